"""(images of the servers on the hosts, image of the request, options) -> weights."""

import pytest

from scheduler.hosts.instances import TrackedInstance, recorded
from scheduler.weights.image_props import ImagePropertiesWeigher
from tests.builders import a_conf, a_fleet, a_request, candidates, contributions

KEY = "image_props_weight_multiplier"
IMAGE = {"hw_architecture": "x86_64", "os_distro": "debian"}
RESIDENTS = (
    [{"image_hw_architecture": "x86_64", "image_os_distro": "debian"}] * 2,
    [{"image_hw_architecture": "x86_64", "image_os_distro": "fedora"}],
    [],
)


def fleet(residents=RESIDENTS):
    table = a_fleet(*[{} for _host in residents])
    for host, instances in enumerate(residents, 1):
        for number, system_metadata in enumerate(instances):
            uuid = f"{host}-{number}"
            properties = recorded(system_metadata)
            instance = TrackedInstance(uuid, f"h{host}", image_properties=properties)
            table.put_instance(f"h{host}", uuid, instance)
    return candidates(table)


@pytest.mark.parametrize(
    ("image", "options", "raw", "weights"),
    [
        pytest.param(IMAGE, {}, [0.0] * 3, [0.0] * 3, id="off"),
        pytest.param(IMAGE, {KEY: 1.0}, [4.0, 1.0, 0.0], [1.0, 0.25, 0.0], id="all count"),
        pytest.param(
            IMAGE,
            {KEY: 1.0, "image_props_weight_setting": ["os_distro=2"]},
            *([4.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
            id="one counts",
        ),
        pytest.param(
            IMAGE,
            {KEY: 1.0, "image_props_weight_setting": ["os_distro"]},
            *([4.0, 1.0, 0.0], [1.0, 0.25, 0.0]),
            id="a setting without a good item is none",
        ),
        pytest.param(None, {KEY: 1.0}, [0.0] * 3, [0.0] * 3, id="no image"),
    ],
)
def test_hosts_are_weighed(image, options, raw, weights):
    images, request = ImagePropertiesWeigher(a_conf(**options)), a_request(image=image)

    assert images.raw(fleet(), request).tolist() == raw
    assert contributions(images, fleet(), request)[0] == pytest.approx(weights)


def test_all_nodes_of_a_host_share_its_servers():
    hosts = fleet()
    hosts.table.put(("h1", "n9"), {"node_id": 9})
    images = ImagePropertiesWeigher(a_conf(**{KEY: 1.0}))

    raw = images.raw(candidates(hosts.table), a_request(image=IMAGE))

    assert raw.tolist() == [4.0, 1.0, 0.0, 4.0]


def test_an_aggregate_cannot_switch_it_on():
    hosts = candidates(a_fleet({"aggregates": [{KEY: "5"}]}, {}))

    assert ImagePropertiesWeigher(a_conf()).raw(hosts, a_request(image=IMAGE)).tolist() == [0, 0]
