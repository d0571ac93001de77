"""Finding the workers of the daemons, and naming the silent ones."""

import oslo_messaging
import pytest

from scheduler.cli.bus import Daemons, Worker

pytestmark = pytest.mark.slow

UNHEARD, ABSENT = oslo_messaging.MessagingTimeout, oslo_messaging.MessageUndeliverable


class Bus:
    """For each daemon the number of its workers, and which of them do not answer, and how not."""

    def __init__(self, daemons):
        self._daemons = daemons

    def ask(self, host, number, method, timeout_seconds, **given):
        count, faults = self._daemons.get(host, (0, {}))
        if number in faults:
            raise faults[number](None, None, None, None)
        if number > count:
            raise ABSENT(None, None, None, None)
        return {"workers": count} if method == "worker" else (host, number, method, given)


@pytest.mark.parametrize(
    ("given", "found", "silent"),
    [
        pytest.param({"a": (1, {}), "b": (1, {})}, [("a", 1), ("b", 1)], [], id="two daemons"),
        pytest.param({"a": (2, {1: UNHEARD})}, [("a", 2)], ["worker 1"], id="first hangs"),
        pytest.param({"a": (2, {2: ABSENT})}, [("a", 1)], ["worker 2"], id="second starts"),
        pytest.param(
            {"a": (0, {}), "b": (1, {})}, [("b", 1)], ["on a does not listen"], id="one is down"
        ),
    ],
)
def test_who_answers_and_who_is_named(given, found, silent):
    asked = Daemons(Bus(given), list(given), 1)
    answers = asked.all("state", about="x")
    assert [answer.result for answer in answers] == [
        (host, number, "state", {"about": "x"}) for host, number in found
    ]
    assert [answer.worker for answer in answers] == [Worker(*each) for each in found]
    assert len(asked.silent) == len(silent)
    assert all(part in text for part, text in zip(silent, asked.silent, strict=True))
