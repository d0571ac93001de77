"""Images of the servers on the hosts, where no recorded decision shows what they weigh."""

from scheduler.hosts.instances import TrackedInstance, recorded
from scheduler.weights.image_props import ImagePropertiesWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates

KEY = "image_props_weight_multiplier"
IMAGE = {"hw_architecture": "x86_64", "os_distro": "debian"}
RESIDENTS = (
    [{"image_hw_architecture": "x86_64", "image_os_distro": "debian"}] * 2,
    [{"image_hw_architecture": "x86_64", "image_os_distro": "fedora"}],
    [],
)


def fleet(**first):
    table = a_fleet(first, {}, {})
    for host, instances in enumerate(RESIDENTS, 1):
        for number, system_metadata in enumerate(instances):
            uuid = f"{host}-{number}"
            properties = recorded(system_metadata)
            instance = TrackedInstance(uuid, f"h{host}", image_properties=properties)
            table.put_instance(f"h{host}", uuid, instance)
    return candidates(table)


def test_all_nodes_of_a_host_share_its_servers():
    hosts = fleet()
    hosts.table.put(("h1", "n9"), {"node_id": 9})
    images = ImagePropertiesWeigher(a_conf(**{KEY: 1.0}))

    raw = images.raw(candidates(hosts.table), a_request(image=IMAGE))

    assert raw.tolist() == [4.0, 1.0, 0.0, 4.0]


def test_an_aggregate_cannot_switch_it_on():
    hosts = fleet(aggregates=[{KEY: "5"}])

    assert ImagePropertiesWeigher(a_conf()).raw(hosts, a_request(image=IMAGE)).tolist() == [0] * 3
