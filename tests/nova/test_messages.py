"""What Nova's API and compute services tell the schedulers by broadcast counts at once.

The caching driver reads the database now and then only; the rest it has from the messages.
"""

import pytest

from tests.nova.deployed import a_uuid, deployed
from tests.nova.driver import NovaError
from tests.waiting import wait_until

HOSTS = ("m1", "m2", "m3")
SELDOM = {"scheduler": {"driver": "caching_scheduler", "periodic_task_interval": 3600}}


@pytest.fixture(scope="module")
def fleet(nova_databases, rabbitmq, tmp_path_factory):
    """A scheduler that read its three hosts when it started, and nothing since."""
    folder = tmp_path_factory.mktemp("fleet")
    with deployed(nova_databases, rabbitmq, folder, settings=SELDOM) as world:
        world.add_hosts("cell1", *HOSTS)
        world.daemon.terminate()
        world.daemon = world.deployment.start_scheduler().wait_ready()
        yield world


def hosts(fleet, **demand):
    try:
        return fleet.hosts(**demand)
    except NovaError as error:
        if not error.is_no_valid_host:
            raise
        return []


def becomes(wanted, asked):
    """Messages take their time; wait until the answer is the one wanted."""
    wait_until(lambda: asked() == wanted, describe=lambda: f"{wanted}, not {asked()}")


def test_aggregates(fleet):
    number = fleet.add_aggregate("told", {"availability_zone": "told"}, "m1")
    assert hosts(fleet, zone="told") == []
    fleet.nova.do("calls.update_aggregates", numbers=[number])
    becomes(["m1"], lambda: hosts(fleet, zone="told"))
    fleet.nova.do("fleet.change_aggregate", number=number, add=["m2"], remove=["m1"])
    assert hosts(fleet, zone="told") == ["m1"]
    fleet.nova.do("calls.update_aggregates", numbers=[number])
    becomes(["m2"], lambda: hosts(fleet, zone="told"))
    fleet.nova.do("calls.delete_aggregate", number=number)
    becomes([], lambda: hosts(fleet, zone="told"))


def test_instances(fleet):
    uuids = [a_uuid(), a_uuid()]
    beside = {"hints": {"same_host": [uuids[1]]}}
    for uuid in uuids:
        fleet.nova.do("fleet.add_instance", host="m3", uuid=uuid)
    assert hosts(fleet, **beside) == []
    fleet.nova.do("calls.update_instance_info", host="m3", uuids=uuids)
    becomes(["m3"], lambda: hosts(fleet, **beside))
    fleet.nova.do("calls.sync_instance_info", host="m3", uuids=uuids)
    fleet.daemon.wait_log("Successfully synced instances from host 'm3'")
    fleet.nova.do("calls.delete_instance_info", host="m3", uuid=uuids[1])
    becomes([], lambda: hosts(fleet, **beside))
    # Both sides differ now; the database knows who is right.
    fleet.nova.do("calls.sync_instance_info", host="m3", uuids=uuids)
    becomes(["m3"], lambda: hosts(fleet, **beside))
    fleet.nova.do("calls.sync_instance_info", host="m3", uuids=[])
    fleet.daemon.wait_log("The instance sync for host 'm3' did not match")
