"""What filters and weighers declare to read is what they read, over fleets of all kinds."""

import pytest
from hypothesis import HealthCheck, given, settings

from scheduler.filters.registry import all_filters
from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.inputs import Inputs
from scheduler.weights.registry import all_weighers
from tests import fleets
from tests.builders import a_conf, candidates

CONF = a_conf(image_props_weight_multiplier=1.0)
PARTS = [cls(CONF) for cls in (*all_filters(), *all_weighers()) if "inputs" in vars(cls)]
#: Read by all multipliers, so that nobody need declare it.
OF_MULTIPLIERS = "aggregates"
#: Parts of what is declared as ``heard_in_time``.
CLOCK = {"service_last_seen": columns.HEARD_IN_TIME}


class Recorder(Candidates):
    """Candidates that remember which columns were read."""

    def __init__(self, scope, rows, read):
        super().__init__(scope, rows)
        self.read = read

    def __getattr__(self, name):
        self.read.add(name)
        return super().__getattr__(name)

    def take(self, chosen):
        return Recorder(self.scope, self.rows[chosen], self.read)

    def per_value(self, name, read, dtype=bool):
        self.read.add(name)
        return super().per_value(name, read, dtype)

    def _distinct_documents(self, name):
        self.read.add(name)
        return super()._distinct_documents(name)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(table=fleets.fleets(), request_spec=fleets.requests())
def test_nothing_is_read_that_is_not_declared(part, table, request_spec):
    declared = Inputs.of(part)
    if declared.of_request(request_spec) is None:
        return
    hosts, read = candidates(table), set()
    recorder = Recorder(hosts.scope, hosts.rows, read)
    if hasattr(part, "conditions"):
        list(part.conditions(recorder, request_spec))
    else:
        part.raw(recorder, request_spec)
        read.discard(OF_MULTIPLIERS)
    assert {CLOCK.get(name, name) for name in read} <= set(declared.columns)


def test_most_of_what_ships_here_can_be_kept():
    kept = {part.name for part in PARTS}
    assert {cls.__name__ for cls in all_filters()} - kept == {"TypeAffinityFilter"}
    assert {cls.__name__ for cls in all_weighers()} - kept == set()
