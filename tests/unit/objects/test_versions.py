"""Older readers get what they understand; older data gets today's meaning."""

import pytest

from scheduler import errors, objects
from scheduler.objects import registry
from tests.unit.objects import wire_samples
from tests.unit.objects.wire_samples import envelope

RATIOS = {"cpu_allocation_ratio": 16.0, "ram_allocation_ratio": 1.5}
LIMITS = objects.NUMATopologyLimits(**RATIOS, network_metadata=objects.NetworkMetadata())
MOVE = objects.Destination(host="h", aggregates=["a"], allow_cross_cell_move=True)
ADDED = {
    "1.6": "requested_destination",
    "1.8": "security_groups",
    "1.9": "user_id",
    "1.10": "network_metadata",
    "1.11": "is_bfv",
    "1.12": "requested_resources",
    "1.13": "request_level_params",
    "1.14": "requested_networks",
}
"""Fields of requests by the version that brought them."""


@pytest.mark.parametrize("version", ["1.5", *ADDED, "1.15"])
def test_request_for_older_readers(version):
    spec = wire_samples.rich()
    spec.requested_networks = objects.NetworkRequestList()
    sent = spec.obj_to_primitive(version)
    assert sent[registry.VERSION_KEY] == version
    known = {
        name for since, name in ADDED.items() if registry.parse(since) <= registry.parse(version)
    }
    assert known == set(ADDED.values()) & sent[registry.DATA_KEY].keys()


@pytest.mark.parametrize(
    ("obj", "version", "data"),
    [
        (MOVE, "1.2", {"host": "h", "aggregates": ["a"]}),
        (MOVE, "1.0", {"host": "h"}),
        (
            *(objects.InstanceGroup(policy="affinity", rules={"max_server_per_host": 2}), "1.10"),
            {"policies": ["affinity"]},
        ),
        (objects.InstanceGroup(policy=None), "1.10", {"policies": []}),
        (LIMITS, "1.0", RATIOS),
    ],
)
def test_downgrades(obj, version, data):
    sent = obj.obj_to_primitive(version)
    assert (sent[registry.VERSION_KEY], sent[registry.DATA_KEY]) == (version, data)


@pytest.mark.parametrize("version", ["1.16", "2.0"])
def test_versions_we_do_not_have_cannot_be_asked_for(version):
    with pytest.raises(errors.IncompatibleObjectVersion):
        objects.RequestSpec().obj_to_primitive(version)


@pytest.mark.parametrize(
    ("version", "data", "policy", "policies"),
    [
        ("1.10", {"policies": ["affinity", "x"]}, "affinity", ["affinity", "x"]),
        ("1.10", {}, None, []),
        ("1.11", {"policy": "affinity"}, "affinity", ["affinity"]),
    ],
)
def test_groups_have_both_forms_of_the_policy(version, data, policy, policies):
    group = objects.from_primitive(envelope("InstanceGroup", version, **data))
    if version == "1.10":
        assert group.obj_to_primitive()[registry.DATA_KEY] == data
    assert (group.policy, group.policies) == (policy, policies)


def test_policies_and_rules_of_groups():
    group = objects.InstanceGroup(policies=["affinity"])
    group.policy = "anti-affinity"
    assert group.policies == ["anti-affinity"], "one form sets the other"
    group = objects.InstanceGroup(rules={"max_server_per_host": 3, "other": "x"})
    assert group._rules == {"max_server_per_host": "3", "other": "x"}
    assert group.rules == {"max_server_per_host": 3, "other": "x"}
    group._rules = {"max_server_per_host": "many"}
    with pytest.raises(errors.InvalidRequest, match="many"):
        _ = group.rules


@pytest.mark.parametrize(
    ("version", "policy", "cpuset", "pcpuset"),
    [
        ("1.3", "dedicated", set(), {0, 1}),
        ("1.3", None, {0, 1}, set()),
        ("1.4", "shared", {0, 1}, set()),
        ("1.6", "dedicated", {0, 1}, set()),
    ],
)
def test_guest_cells_of_older_senders(version, policy, cpuset, pcpuset):
    received = envelope("InstanceNUMACell", version, cpuset=[0, 1], cpu_policy=policy)
    cell = objects.from_primitive(received)
    assert cell.obj_to_primitive() == received
    assert (cell.cpuset, cell.pcpuset, cell.total_cpus) == (cpuset, pcpuset, {0, 1})


@pytest.mark.parametrize(
    ("changes", "assigned", "expected"),
    [
        pytest.param(["flavorid"], [], ["flavorid"], id="as received"),
        pytest.param(["flavorid"], ["swap", "flavorid"], ["flavorid", "swap"], id="and assigned"),
        pytest.param(None, ["swap"], ["swap"], id="none received"),
        pytest.param(None, [], None, id="none at all"),
        pytest.param(["flavorid", "no_field", 1, ["x"]], [], ["flavorid"], id="junk"),
        pytest.param("swap", [], None, id="no list"),
    ],
)
def test_changes_travel_on(changes, assigned, expected):
    received = envelope("Flavor", flavorid="a", swap=0)
    if changes is not None:
        received["nova_object.changes"] = changes
    flavor = objects.from_primitive(received)
    for name in assigned:
        setattr(flavor, name, 1)
    for each in (flavor, flavor.copy()):
        assert each.obj_to_primitive().get("nova_object.changes") == expected


def test_what_is_made_here_lists_no_changes_but_in_replies():
    assert "nova_object.changes" not in objects.Flavor(name="a").obj_to_primitive()
    selection = objects.Selection(service_host="h", limits=objects.SchedulerLimits(vcpu=1))
    reply = selection.obj_to_primitive()
    assert reply["nova_object.changes"] == ["service_host", "limits"]
    assert reply["nova_object.data"]["limits"]["nova_object.changes"] == ["vcpu"]
