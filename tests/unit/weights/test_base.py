"""(metadata of a host's aggregates) -> the multiplier that counts for it."""

import logging

import numpy as np
import pytest

from scheduler.hosts.candidates import Candidates, Scope
from scheduler.weights.base import BaseHostWeigher
from scheduler.weights.ram import RAMWeigher
from tests.builders import NOW, a_conf, a_fleet, a_request, candidates

KEY = "ram_weight_multiplier"


@pytest.mark.parametrize(
    ("metadata", "multiplier"),
    [([], 1.0), ([{"other": "5"}], 1.0), ([{KEY: "-2"}, {KEY: "3"}], -2.0), ([{KEY: "0"}], 0.0)],
)
def test_aggregates_set_the_multiplier(metadata, multiplier):
    hosts = candidates(a_fleet({"aggregates": metadata}, {}))
    ram = RAMWeigher(a_conf())

    assert np.broadcast_to(ram.multipliers(hosts), 2).tolist() == [multiplier, 1.0]
    assert [ram.weight_multiplier(state) for state in hosts] == [multiplier, 1.0]


@pytest.mark.parametrize(
    "metadata", [[{KEY: "abc"}], [{KEY: "abc"}, {KEY: "3"}], [{KEY: "1,2"}], [{KEY: ""}]]
)
def test_one_bad_value_spoils_all_and_is_told(metadata, caplog):
    hosts = candidates(a_fleet({"aggregates": metadata}, {}))

    with caplog.at_level(logging.WARNING):
        multipliers = RAMWeigher(a_conf(ram_weight_multiplier=5.0)).multipliers(hosts)

    assert multipliers.tolist() == [5.0, 5.0]
    assert "Could not decode 'ram_weight_multiplier' weight multiplier" in caplog.text


def test_newton_asks_no_aggregate():
    conf = a_conf(scheduler__semantics="newton")
    hosts = candidates(a_fleet({"aggregates": [{KEY: "-2"}]}, {}))

    assert RAMWeigher(conf).multipliers(hosts) == 1.0
    assert [RAMWeigher(conf).weight_multiplier(state) for state in hosts] == [1.0, 1.0]


def test_only_the_aggregates_of_the_hosts_that_are_weighed_count():
    """Also where more is known of aggregates than there are hosts to weigh."""
    table = a_fleet(
        {"aggregates": [{KEY: "2"}]}, {"aggregates": [{KEY: "3"}]}, {}, {"aggregates": [{KEY: "4"}]}
    )
    first, second, third, _fourth = table.order
    ram = RAMWeigher(a_conf())

    def multipliers(*rows):
        return ram.multipliers(Candidates(Scope(table, NOW, 60.0), np.array(rows)))

    assert multipliers(second).tolist() == [3.0]
    assert multipliers(third, first).tolist() == [1.0, 2.0]
    assert multipliers(third) == 1.0


class Foreign(BaseHostWeigher):
    """Written against Nova until Rocky: the multiplier is no host's own."""

    def weight_multiplier(self):
        return 3

    def _weigh_object(self, host_state, weight_properties):
        return host_state.free_ram_mb - weight_properties.flavor.memory_mb


def test_a_foreign_weigher_sees_host_and_request_and_gives_numbers():
    conf = a_conf()
    hosts, foreign = candidates(a_fleet({"free_ram_mb": 600}, {"free_ram_mb": 512})), Foreign(conf)

    raw = foreign.raw(hosts, a_request(flavor={"memory_mb": 512}))

    assert foreign.conf is conf
    assert raw.tolist() == [88.0, 0.0]
    assert raw.dtype == np.float64
    assert foreign.multipliers(hosts) == 3.0


def test_a_weigher_that_weighs_nothing_says_so():
    [state] = candidates(a_fleet({}))
    empty = BaseHostWeigher()

    assert empty.weight_multiplier(state) == 1.0
    assert empty.multipliers(candidates(a_fleet({}, {}))).tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match="BaseHostWeigher does not implement"):
        empty._weigh_object(state, a_request())
