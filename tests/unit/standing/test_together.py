"""Servers whose hosts are chosen together, or cannot be, fare as they would one by one."""

from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.filters.ram_filter import RamFilter
from scheduler.hosts import columns
from scheduler.hosts.inputs import Inputs
from tests.builders import NOW, a_conf, a_host, a_request
from tests.unit.standing.test_same_as_from_scratch import UUIDS, World


class RoomFilter(RamFilter):
    """One whose limits follow from what picks change, which it does not say."""

    inputs = Inputs("free_ram_mb", of_request=lambda request: request.memory_mb)

    def limits(self, host_state, request):
        return {"memory_mb": host_state.free_ram_mb}


@pytest.mark.parametrize(
    ("filters", "host", "others", "limits"),
    [
        ("RamFilter", {}, {}, [4096.0] * 3),
        ("RoomFilter", {}, {}, [4096, 3072, 2048]),
        ("RamFilter", {}, {"group": {"policy": "affinity"}}, [4096.0] * 3),
        ("RamFilter", {"bare_metal": True}, {}, None),
        ("RamFilter", {"free_ram_mb": 2048}, {}, None),
    ],
    ids=["all together", "limits that change", "a group", "bare metal", "too little"],
)
def test_each_of_several_servers_gets_what_it_would_get_alone(filters, host, others, limits):
    found = []
    for keeps_results in (True, False):
        conf = a_conf(
            available_filters=["nova.scheduler.filters.all_filters", f"{__name__}.RoomFilter"],
            enabled_filters=[filters],
        )
        world = World(conf, keeps_results=keeps_results)
        sizes = {"free_ram_mb": 4096, "total_usable_ram_mb": 4096, "ram_allocation_ratio": 1.0}
        a_host("h1", "n", table=world.table, **{**sizes, **host})
        request = a_request(flavor={"memory_mb": 1024, "root_gb": 0}, **others)
        placed, (_counts, _removed, before), *_others = world.decide(request, NOW, 1, UUIDS, 3, 0)
        picks = [(pick.uuid, pick.terms) for pick in world.books]
        found.append((placed, before, picks, contents(world.table)))
    assert found[0] == found[1]
    placed, before, picks, _contents = found[0]
    if limits is None:
        assert placed[0] is errors.NoValidHost
        assert 0 < before < 3
        assert picks == []
    else:
        assert [limit for (_row, limit), _others in placed] == [
            repr({"memory_mb": each}) for each in limits
        ]
        assert [uuid for uuid, _terms in picks] == UUIDS[:3]


def contents(table):
    """What picks change of the rows, and the instances that the hosts show."""
    numbers = [table.column(name).tolist() for name in columns.ADDED_BY_PICKS]
    return numbers, {host: set(several) for host, several in table.instances.items()}
