"""What changes through Nova's own objects is seen by the very next decision."""

import pytest

from tests.nova.deployed import a_uuid
from tests.nova.driver import NovaError

AS_BEFORE = {"disabled": False, "disabled_reason": None, "forced_down": False}


def sized(times):
    """Columns of a host that many times as big as one by default."""
    memory_mb, disk_gb = 32768 * times, 500 * times
    return {
        "vcpus": 16 * times,
        "memory_mb": memory_mb,
        "free_ram_mb": memory_mb,
        "local_gb": disk_gb,
        "free_disk_gb": disk_gb,
        "disk_available_least": disk_gb,
    }


@pytest.fixture(scope="module")
def fleet(world):
    """Two hosts, n1 the bigger one, and nobody else."""
    world.add_hosts("cell1", "n1", **sized(4))
    world.add_hosts("cell2", "n2")
    return world


@pytest.fixture(autouse=True)
def as_before(fleet):
    """Each test finds n1 the best host, and leaves it so."""
    assert asked_for_best(fleet) == "n1"
    yield
    fleet.nova.do("fleet.change_service", name="n1", fields=AS_BEFORE)


def asked_for_best(fleet):
    """The host that a server of next to nothing gets."""
    (host,) = fleet.hosts(flavor={"memory_mb": 1, "root_gb": 0})
    return host


def is_refused(fleet, **demand):
    try:
        fleet.select(**demand)
    except NovaError as error:
        if not error.is_no_valid_host:
            raise
        return True
    return False


@pytest.mark.parametrize(
    "change", [{"disabled": True, "disabled_reason": "maintenance"}, {"forced_down": True}]
)
def test_a_host_that_is_disabled_or_forced_down(fleet, change):
    fleet.nova.do("fleet.change_service", name="n1", fields=change)
    assert asked_for_best(fleet) == "n2"
    fleet.nova.do("fleet.change_service", name="n1", fields=AS_BEFORE)
    assert asked_for_best(fleet) == "n1"


def test_a_host_with_less_memory(fleet):
    fleet.nova.do("fleet.change_host", name="n1", columns={"free_ram_mb": -40_000})
    assert fleet.hosts(flavor={"memory_mb": 30_000}) == ["n2"]
    fleet.nova.do("fleet.change_host", name="n1", columns={"free_ram_mb": 4 * 32768})
    assert asked_for_best(fleet) == "n1"


def test_an_aggregate_that_changes(fleet):
    number = fleet.add_aggregate("zone", {"availability_zone": "west"}, "n2")
    assert fleet.hosts(zone="west") == ["n2"]
    fleet.nova.do("fleet.change_aggregate", number=number, add=["n1"])
    assert fleet.hosts(zone="west") == ["n1"]
    fleet.nova.do("fleet.change_aggregate", number=number, remove=["n1"])
    assert fleet.hosts(zone="west") == ["n2"]
    fleet.nova.do("fleet.change_aggregate", number=number, metadata={"availability_zone": "south"})
    assert is_refused(fleet, zone="west")
    assert fleet.hosts(zone="south") == ["n2"]
    fleet.nova.do("fleet.remove_aggregate", number=number)
    assert is_refused(fleet, zone="south")


def test_an_instance_that_comes_moves_and_goes(fleet):
    uuid = a_uuid()
    beside = {"hints": {"same_host": [uuid]}}
    assert is_refused(fleet, **beside)
    fleet.nova.do("fleet.add_instance", host="n2", uuid=uuid)
    assert fleet.hosts(**beside) == ["n2"]
    fleet.nova.do("fleet.remove_instance", uuid=uuid)
    assert is_refused(fleet, **beside)


def test_a_host_that_registers_and_one_that_leaves(fleet):
    fleet.add_hosts("cell2", "n3", **sized(16))
    assert asked_for_best(fleet) == "n3"
    fleet.nova.do("fleet.remove_host", name="n3")
    assert asked_for_best(fleet) == "n1"


def test_the_host_of_a_group_member(fleet):
    group = fleet.nova.do("fleet.add_group", policy="affinity")
    fleet.nova.do("fleet.add_instance", host="n2", uuid=a_uuid(), group=group)
    assert fleet.hosts(group=group) == ["n2"]
    apart = fleet.nova.do("fleet.add_group", policy="anti-affinity")
    fleet.nova.do("fleet.add_instance", host="n1", uuid=a_uuid(), group=apart)
    assert fleet.hosts(group=apart) == ["n2"]
