"""Normalising and adding up."""

import numpy as np
import pytest

from scheduler import semantics
from scheduler.engine.evaluation import weigh
from scheduler.weights.base import BaseHostWeigher
from scheduler.weights.ram import RAMWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, names


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


def test_a_foreign_weigher_may_weigh_all_hosts_itself():
    class Fullest(BaseHostWeigher):
        """As in Nova: a list of what has the host as ``obj``; the base asks host by host."""

        def _weigh_object(self, host_state, weight_properties):
            return host_state.num_instances

        def weigh_objects(self, weighed_obj_list, weight_properties):
            self.maxval = max(each.obj.num_instances for each in weighed_obj_list)
            assert {each.weight for each in weighed_obj_list[:]} == {0.0}
            found = super().weigh_objects(weighed_obj_list, weight_properties)
            return (value / weight_properties.vcpus for value in found)

    table = a_fleet({"num_instances": 3}, {"num_instances": 1}, {"num_instances": 7})
    hosts, totals, [part] = ranked([Fullest()], table, a_request(flavor={"vcpus": 2}))
    assert hosts == ["h3", "h1", "h2"]
    assert part.raw.tolist() == [1.5, 0.5, 3.5]
    assert part.bounds == (0.5, 7.0)
    assert totals[-1] == 0.0


class Halved(RAMWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return super()._weigh_object(host_state, weight_properties) / 2


class Doubled(RAMWeigher):
    def weight_multiplier(self, host_state):
        return super().weight_multiplier(host_state) * 2


class Listed(RAMWeigher):
    def weigh_objects(self, weighed_obj_list, weight_properties):
        return [each.obj.free_ram_mb / 2 for each in weighed_obj_list]


class HalvedTwice(Halved):
    def _weigh_object(self, host_state, weight_properties):
        return super()._weigh_object(host_state, weight_properties) / 2


class OfNoUse(HalvedTwice):
    """Nothing of its own."""


@pytest.mark.parametrize(
    ("kind", "raw", "factor"),
    [
        (RAMWeigher, [64.0, 128.0], 1.0),
        (Halved, [32.0, 64.0], 1.0),
        (Listed, [32.0, 64.0], 1.0),
        (Doubled, [64.0, 128.0], 2.0),
        (HalvedTwice, [16.0, 32.0], 1.0),
        (OfNoUse, [16.0, 32.0], 1.0),
    ],
)
def test_methods_of_nova_may_be_overridden_in_weighers_that_ship_here(kind, raw, factor):
    table = a_fleet({"free_ram_mb": 64}, {"free_ram_mb": 128})
    _hosts, _totals, [part] = ranked([kind(a_conf())], table)
    assert (part.raw.tolist(), np.unique(part.multiplier).tolist()) == (raw, [factor])


def test_a_weigher_of_havana_has_its_multiplier_under_the_older_name():
    class Fewest(BaseHostWeigher):
        def _weight_multiplier(self):
            return -1.0

        def _weigh_object(self, host_state, weight_properties):
            return host_state.num_instances

    table = a_fleet({"num_instances": 3}, {"num_instances": 1})
    assert ranked([Fewest()], table)[0] == ["h2", "h1"]
