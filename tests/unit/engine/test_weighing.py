"""Normalising and adding up."""

import numpy as np
import pytest

from scheduler import semantics
from scheduler.engine.evaluation import weigh
from scheduler.weights.base import BaseHostWeigher
from tests.builders import a_fleet, a_request, candidates, names


def ranked(weighers, table, request=None, chosen=semantics.CURRENT):
    """Names and totals of all hosts, the best first, and the parts."""
    hosts = candidates(table)
    totals, parts = weigh(weighers, hosts, request or a_request(), chosen)
    order = np.argsort(-totals, kind="stable")
    return names(hosts.take(order)), totals[order], parts


@pytest.mark.parametrize("hosts", [0, 1])
def test_fewer_than_two_hosts_are_not_weighed(hosts):
    class Never(BaseHostWeigher):
        """Fails when asked."""

    _hosts, totals, parts = ranked([Never()], a_fleet(*[{}] * hosts))

    assert totals.tolist() == [0.0] * hosts
    assert parts == []


def test_a_foreign_weigher_is_asked_host_by_host():
    class Newest(BaseHostWeigher):
        """Written against Nova: values and multipliers per host state."""

        maxval = 3

        def weight_multiplier(self, host_state):
            return 2.0 if host_state.host == "h2" else 1.0

        def _weigh_object(self, host_state, weight_properties):
            return int(host_state.host[1:])

    hosts, totals, _parts = ranked([Newest()], a_fleet({}, {}, {}, {}))

    assert hosts == ["h2", "h3", "h4", "h1"]
    assert totals == pytest.approx([1.0, 1.0, 1.0, 0.0])


def test_a_weigher_of_havana_has_its_multiplier_under_the_older_name():
    class Fewest(BaseHostWeigher):
        def _weight_multiplier(self):
            return -1.0

        def _weigh_object(self, host_state, weight_properties):
            return host_state.num_instances

    table = a_fleet({"num_instances": 3}, {"num_instances": 1})
    assert ranked([Fewest()], table)[0] == ["h2", "h1"]
