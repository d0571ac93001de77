"""(metadata of a host's aggregates) -> the multiplier that counts for it."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from scheduler.weights.ram import RAMWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

KEY = "ram_weight_multiplier"


@pytest.mark.parametrize(
    ("metadata", "multiplier"),
    [
        pytest.param([], 1.0, id="no aggregate"),
        pytest.param([{"other": "5"}], 1.0, id="other metadata"),
        pytest.param([{KEY: "-2"}], -2.0, id="one"),
        pytest.param([{KEY: "-2"}, {KEY: "3"}], -2.0, id="the smallest"),
        pytest.param([{KEY: "10.0"}, {KEY: "9"}], 9.0, id="the smallest as a number"),
        pytest.param([{KEY: "0"}], 0.0, id="zero"),
    ],
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


def test_more_than_one_value_is_told(caplog):
    hosts = candidates(a_fleet({"aggregates": [{KEY: "1"}, {KEY: "1.0"}]}, {}))

    with caplog.at_level(logging.INFO):
        RAMWeigher(a_conf()).multipliers(hosts)

    assert "2 values found, of which the minimum value will be used." in caplog.messages


def test_newton_asks_no_aggregate():
    conf = a_conf()
    conf.set_override("semantics", "newton", group="scheduler")
    hosts = candidates(a_fleet({"aggregates": [{KEY: "-2"}]}, {}))
    ram = RAMWeigher(conf)

    assert ram.multipliers(hosts) == 1.0
    assert [ram.weight_multiplier(state) for state in hosts] == [1.0, 1.0]


def test_a_multiplier_per_aggregate_counts_for_its_hosts_only():
    hosts = candidates(
        a_fleet(
            {"free_ram_mb": 1024, "aggregates": [{KEY: "-2"}, {KEY: "3"}]},
            {"free_ram_mb": 2048},
            {"free_ram_mb": 8192, "aggregates": [{KEY: "abc"}]},
        )
    )

    found, order = contributions(RAMWeigher(a_conf()), hosts, a_request())

    assert found == pytest.approx([-0.25, 0.25, 1.0])
    assert order == ["h3", "h2", "h1"]
