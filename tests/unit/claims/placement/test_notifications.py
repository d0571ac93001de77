"""(what Placement answers) -> the notifications of a selection, as Nova sends them."""

import contextlib

import pytest

from scheduler import errors
from scheduler.claims.placement.offers import QUERIES
from scheduler.manager import SchedulerManager
from tests.unit.claims.placement.test_backend import (
    CHECK,
    DONE,
    FILL,
    GONE,
    LOOK,
    NO_OFFER,
    OFFERED,
    SAMPLE,
)
from tests.unit.claims.placement.test_calls import (
    CONSUMER,
    NOTHING,
    a_driver,
    a_placement,
    request_of,
)


class Phases(list):
    """Phases of the selections that notifications were sent of."""

    enabled = True

    def select_destinations(self, _context, phase, _spec):
        self.append(phase)


BOTH_PHASES = ["start", "end"]


@pytest.mark.parametrize(
    ("answers", "query", "fields", "phases"),
    [
        pytest.param([OFFERED, NOTHING, DONE], "fleet", {}, BOTH_PHASES, id="success"),
        pytest.param([], "fleet", {"scheduler_hints": CHECK}, BOTH_PHASES, id="a check"),
        pytest.param([NO_OFFER, NOTHING], "fleet", {}, [], id="no offer"),
        pytest.param([GONE], "fleet", {}, [], id="Placement is away"),
        pytest.param(
            [*([OFFERED, *FILL] * QUERIES), NOTHING], "fleet", {}, ["start"], id="all are full"
        ),
        pytest.param(
            [*LOOK, NOTHING], "chosen", {"ignore_hosts": ["h1", "h2"]}, ["start"], id="never asked"
        ),
    ],
)
def test_notifications_are_sent_as_nova_sends_them(answers, query, fields, phases):
    sent = Phases()
    with a_placement(*answers) as (_server, conf):
        conf.set_override("placement_query", query, group="scheduler")
        context, spec = request_of(SAMPLE)
        for name, value in fields.items():
            setattr(spec, name, value)
        manager = SchedulerManager(conf, a_driver(conf, SAMPLE, lambda _seconds: None), sent)
        manager.driver.claims.prepare()
        with contextlib.suppress(errors.NoValidHost):
            manager.select_destinations(context, spec_obj=spec, instance_uuids=[CONSUMER])
    assert sent == phases
