"""Which queues are those of a process that is gone."""

import pytest

from scheduler.broker import queues

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "consumers", "is_leftover"),
    [
        (f"reply_{HEX}", 0, True),
        (f"reply_{HEX}", 1, False),
        (f"scheduler_fanout_{HEX}", 0, True),
        (f"compute_fanout_{HEX}", 0, True),
        ("reply_node1:nova-scheduler:3", 0, True),
        ("scheduler_fanout_node1:nova-scheduler:3", 0, True),
        ("scheduler", 0, False),
        ("scheduler.node1", 0, False),
        ("scheduler_fanout", 0, False),
        ("reply_all", 0, False),
        (f"my.reply_{HEX}", 0, False),
        ("notifications.info", 0, False),
    ],
)
def test_only_queues_of_one_process_without_a_consumer(
    name: str, consumers: int, is_leftover: bool
) -> None:
    listed = {"name": name, "consumers": consumers}
    assert queues.unconsumed([listed]) == ([name] if is_leftover else [])
