"""The builders and the decider that authors of plug-ins get."""

import pytest

from scheduler import errors
from scheduler.drivers import Scheduler
from scheduler.filters import BaseHostFilter
from scheduler.testing import NOW, Decider, a_request
from scheduler.weights import BaseHostWeigher

GONE = ({"last_seen": NOW - 61}, {"service": {"disabled": True}})


class Odd(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return int(host_state.host[1:]) % 2 == 1


class Crowded(BaseHostWeigher):
    def _weigh_object(self, host_state, weight_properties):
        return float(host_state.num_instances)


class Last(Scheduler):
    def select_destinations(self, context, spec_obj, *_args, **_named):
        return [{"host": self.hosts_up(context, "compute")[-1]}] * spec_obj.num_instances


def test_filters_and_weighers_are_the_only_ones():
    scheduler = Decider(
        *({"num_instances": number, "free_ram_mb": 0} for number in (1, 5, 3)),
        filters=[Odd],
        weighers=[Crowded],
    )
    assert scheduler.decide(a_request()) == ["h3"]
    record = scheduler.explain()
    assert [(each["name"], each["end"]) for each in record["filters"]] == [("Odd", 2)]
    assert [each["name"] for each in record["top"][0]["weighers"]] == ["Crowded"]


def test_what_is_placed_stays_placed():
    scheduler = Decider({}, {}, enabled_filters=["RamFilter"], ram_weight_multiplier=1.0)
    large = a_request(flavor={"memory_mb": 4096})
    assert sorted(scheduler.decide(large, count=2)) == ["h1", "h2"]
    with pytest.raises(errors.NoValidHost):
        scheduler.decide(large)
    assert scheduler.explain()["cause"].startswith("No host fits: RamFilter removed all 2 hosts")


@pytest.mark.parametrize("driver", [Last, f"{__name__}.Last"], ids=["class", "path"])
def test_a_driver(driver):
    assert Decider({}, {}, *GONE, driver=driver).decide(a_request()) == ["h2"]
