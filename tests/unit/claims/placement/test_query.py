"""What a request asks of Placement, as the query that is sent."""

import urllib.parse
from types import SimpleNamespace

import pytest

from scheduler import errors, objects
from scheduler.claims.placement.candidates import CandidateQuery, Fleet, fleet_of
from tests.builders import a_conf, a_fleet, a_request

AGGREGATE, OTHER, NODE = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
FLAVOR = {"vcpus": 2, "memory_mb": 512, "root_gb": 5, "ephemeral_gb": 1, "swap": 1025}
SIZES = "DISK_GB:8,MEMORY_MB:512,VCPU:2"
NO_FLEET = Fleet((), 0, None)
DISABLED = "!COMPUTE_STATUS_DISABLED"


def queries(spec, fleet=NO_FLEET, **options):
    wishes = CandidateQuery(a_conf(**options), None).wishes(spec, fleet)
    texts = [each.for_fleet() for each in wishes]
    return [urllib.parse.parse_qs(text, strict_parsing=True) for text in texts]


def query(spec, fleet=NO_FLEET, **options):
    (found,) = queries(spec, fleet, **options)
    return found


def a_spec(extra_specs=None, *, flavor=None, **fields):
    sizes = {**FLAVOR, **(flavor or {}), "extra_specs": extra_specs or {}}
    return a_request(flavor=sizes, **fields)


def a_group(suffix, **fields):
    return objects.RequestGroup(requester_id=suffix, **fields)


def an_aggregate(uuid, **metadata):
    return objects.Aggregate(id=1, uuid=uuid, name="a", metadata=metadata)


def pinned(policy="dedicated", thread_policy=None, emulator=None):
    policies = {"cpu_policy": policy, "cpu_thread_policy": thread_policy}
    cell = objects.InstanceNUMACell(id=0, cpuset=set(), pcpuset={0, 1}, memory=512, **policies)
    return objects.InstanceNUMATopology(cells=[cell], emulator_threads_policy=emulator)


DESTINATION = objects.Destination(
    aggregates=[f"{OTHER},{AGGREGATE}", NODE], forbidden_aggregates={OTHER}
)
PORT = a_group("p1", resources={"NET_BW": 5}, required_traits={"T"}, in_tree=OTHER)
PARAMS = objects.RequestLevelParams(
    root_required={"R"}, root_forbidden={"F"}, same_subtree=[["a", "b"]]
)
NO_DISK = {"root_gb": 0, "ephemeral_gb": 0, "swap": 0}
NUMBERED = {"resources1:VGPU": "1", "resources_b:SRIOV_NET_VF": "2", "trait1:X": "required"}
TRAITS = {"trait:CUSTOM_B": "required", "trait:HW_A": "required", "trait:X": "forbidden"}
NO_ROOM = dict.fromkeys(("resources:VCPU", "resources:MEMORY_MB", "resources:DISK_GB"), "0")
IRON = {"resources:VCPU": "0", "resources:CUSTOM_METAL": "1"}
AGGREGATES = (
    an_aggregate(AGGREGATE, availability_zone="east, west", filter_tenant_id2="me"),
    an_aggregate(NODE, **{"trait:X": "maybe"}),
    an_aggregate(OTHER, **{"trait:CUSTOM_LICENSED": "required"}),
)
ZONES, TENANTS = (
    "scheduler__query_placement_for_availability_zone",
    "scheduler__limit_tenants_to_placement_aggregate",
)
NEEDED, ISOLATED = (
    "scheduler__placement_aggregate_required_for_tenants",
    "scheduler__enable_isolated_aggregate_filtering",
)
IMAGES = "scheduler__query_placement_for_image_type_support"
PREFILTER = {"scheduler__image_metadata_prefilter": True}
SCSI = {"hw_disk_bus": "scsi", "hw_cdrom_bus": "ide", "hw_vif_model": "spapr-vlan"}
BUSES = "COMPUTE_NET_VIF_MODEL_SPAPR_VLAN,COMPUTE_STORAGE_BUS_IDE,COMPUTE_STORAGE_BUS_SCSI"
ARM = {"hw_architecture": "aarch64", "hw_emulation_architecture": "x86_64"}
ARM_TRAITS, NO_TRAITS = "COMPUTE_ARCH_X86_64,HW_ARCH_AARCH64", f"root_required={DISABLED}"
LICENSED = {"trait:CUSTOM_LICENSED": "required"}
CASES = {  # what is asked for -> parts of the query (nothing behind "=": no such part) by options
    "a plain flavor": ({}, f"limit=1000 resources={SIZES} root_required={DISABLED}"),
    "a root volume takes no disk": ({"is_bfv": True}, "resources=DISK_GB:3,MEMORY_MB:512,VCPU:2"),
    "without disk": ({"flavor": NO_DISK}, "resources=MEMORY_MB:512,VCPU:2"),
    "extra specs first": (IRON, "resources=CUSTOM_METAL:1,DISK_GB:8,MEMORY_MB:512"),
    "traits": (TRAITS, "required=CUSTOM_B,HW_A,!X"),
    "a class that cannot be": ({"resources:CUSTOM_x": "1"}, f"resources=CUSTOM_x:1,{SIZES}"),
    "a trait that cannot be": ({"trait:custom_b": "required"}, "required=custom_b"),
    "sizes in groups": (
        {"resources1:VCPU": "1", "resources2:VCPU": "1", "resources:DISK_GB": "3"},
        "resources=DISK_GB:3,MEMORY_MB:512 resources1=VCPU:1 resources2=VCPU:1",
    ),
    "no pinned CPUs": ({"resources:PCPU": "0"}, "resources=DISK_GB:8,MEMORY_MB:512"),
    "no amount beside one in a group": (
        {"resources:VCPU": "2.0", "resources2:VCPU": "1"},
        "resources=DISK_GB:8,MEMORY_MB:512 resources2=VCPU:1",
    ),
    "groups": (NUMBERED, "resources1=VGPU:1 required1=X resources_b=SRIOV_NET_VF:2"),
    "nothing in a group": (
        {"resources1:VGPU": "0", "resources2:VGPU": "1", "trait2:X": "required"},
        "resources1= resources2=VGPU:1 required2=X",
    ),
    "several groups have a policy": (NUMBERED, "group_policy=none"),
    "one needs none": ({"resources1:VGPU": "1"}, "resources1=VGPU:1 group_policy="),
    "no groups have none": ({"group_policy": "isolate"}, "group_policy="),
    "its own": ({"resources1:VGPU": "1", "group_policy": "isolate"}, "group_policy=isolate"),
    "a port": ({"requested_resources": [PORT]}, f"resourcesp1=NET_BW:5 in_treep1={OTHER}"),
    "roots": ({"request_level_params": PARAMS}, f"root_required=R,{DISABLED},!F same_subtree=a,b"),
    "aggregates": (
        {"requested_destination": DESTINATION},
        f"member_of=!in:{OTHER}|in:{AGGREGATE},{OTHER}|in:{NODE}",
    ),
    "an image": ({"image": {"traits_required": ["CUSTOM_I"]}}, "required=CUSTOM_I"),
    "hints of all hosts": ({"hints": {"different_host": [NODE]}}, "limit="),
    "a zone": ({"availability_zone": "west"}, f"member_of=in:{AGGREGATE}"),
    "the first of its zones": ({"availability_zone": "east"}, f"member_of=in:{AGGREGATE}"),
    "an unknown zone": ({"availability_zone": "nova"}, "member_of="),
    "zones off": ({"availability_zone": "west"}, "member_of=", {ZONES: False}),
    "a tenant": ({"project_id": "me"}, f"member_of=in:{AGGREGATE}", {TENANTS: True, NEEDED: True}),
    "another tenant": ({"project_id": "you"}, "member_of=", {TENANTS: True}),
    "isolated": ({"is_bfv": False}, f"member_of=!in:{OTHER}", {ISOLATED: True}),
    "what an image wants": ({"image": SCSI}, f"root_required={BUSES},{DISABLED}", PREFILTER),
    "its architecture": ({"image": ARM}, f"root_required={ARM_TRAITS},{DISABLED}", PREFILTER),
    "not asked for": ({"image": SCSI}, NO_TRAITS),
    "no IOMMU": ({"image": {**SCSI, "hw_viommu_model": "intel"}}, NO_TRAITS, PREFILTER),
    "an old ARM": ({"image": {**SCSI, "hw_architecture": "armv7l"}}, NO_TRAITS, PREFILTER),
    "Alpha": ({"image": {**SCSI, "hw_emulation_architecture": "alpha"}}, NO_TRAITS, PREFILTER),
    "licensed": (LICENSED, "member_of=", {ISOLATED: True}),
    "a licensed device": (
        {"resources1:VGPU": "1", "trait1:CUSTOM_LICENSED": "required"},
        "member_of=",
        {ISOLATED: True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_asked(name):
    given, text, *options = CASES[name]
    is_specs = all(":" in key or key == "group_policy" for key in given)
    spec = a_spec(given) if is_specs else a_spec(**given)
    found = query(spec, Fleet(AGGREGATES, 0, None), **dict(*options))
    assert given or found.keys() == {"limit", "resources", "root_required"}
    for part in text.split():
        key, _equals, value = part.partition("=")
        assert found.get(key) == (value.split("|") if value else None)


@pytest.mark.parametrize(
    ("extra_specs", "warning"),
    [
        ({"resources:VCPU": "many"}, "nonnegative integers. Received 'many' as resources:VCPU"),
        ({"resources1:VGPU": "-1"}, "nonnegative integers. Received '-1' as resources1:VGPU"),
        ({"resources:NOPE": "1"}, "Received an invalid ResourceClass 'NOPE' in extra_specs."),
        ({"resources2:vcpu": "1"}, "Received an invalid ResourceClass 'vcpu' in extra_specs."),
        ({"trait:X": "maybe"}, "Only (required, forbidden) traits are supported. Received 'maybe'"),
        ({"group_policy": "together"}, "Invalid group_policy 'together'."),
    ],
)
def test_extra_specs_that_make_no_sense_are_passed_over_as_in_nova(caplog, extra_specs, warning):
    assert query(a_spec(extra_specs)) == query(a_spec())
    assert warning in caplog.text


@pytest.mark.parametrize(
    ("topology", "first", "second"),
    [
        (pinned(), "PCPU:2", "VCPU:2"),
        (pinned(emulator="isolate"), "PCPU:3", "VCPU:2"),
        (pinned(thread_policy="isolate"), "PCPU:2", "VCPU:2"),
    ],
)
def test_pinned_cpus_are_asked_for_both_ways(topology, first, second):
    spec = a_spec({"hw:cpu_policy": "dedicated"}, numa_topology=topology)
    found = queries(spec)
    wanted = [",".join(sorted(["DISK_GB:8", "MEMORY_MB:512", cpus])) for cpus in (first, second)]
    assert [each["resources"] for each in found] == [[text] for text in wanted]
    isolated = topology.cells[0].cpu_thread_policy == "isolate"
    traits = ["!HW_CPU_HYPERTHREADING"] if isolated else None
    assert [each.get("required") for each in found] == [traits, None]
    assert len(queries(spec, workarounds__disable_fallback_pcpu_query=True)) == 1


@pytest.mark.parametrize(("emulator", "pinned_cpus"), [(None, 2), ("isolate", 3)])
def test_mixed_cpus_are_asked_for_by_cell_and_one_way(emulator, pinned_cpus):
    topology = pinned("mixed", emulator=emulator)
    shared = objects.InstanceNUMACell(id=1, cpuset={2}, pcpuset=set(), memory=1, cpu_policy="mixed")
    topology.cells = [*topology.cells, shared]
    specs = {"hw:cpu_policy": "mixed"}
    found = query(a_spec(specs, flavor={"vcpus": 3}, numa_topology=topology))
    assert found["resources"] == [f"DISK_GB:8,MEMORY_MB:512,PCPU:{pinned_cpus},VCPU:1"]


@pytest.mark.parametrize("amount", ["2", "0"])
def test_what_the_flavor_itself_wants_is_asked_for_one_way(amount):
    found = query(a_spec({"resources:PCPU": amount}, numa_topology=pinned()))
    assert found["resources"] == ["DISK_GB:8,MEMORY_MB:512,PCPU:2"]


def manager(*hosts):
    return SimpleNamespace(table=a_fleet(*hosts), aggregates=["a1", "a2"])


@pytest.mark.parametrize(
    ("bound_to", "lowest", "parts"),
    [
        (None, 72, {"limit": ["7"], "in_tree": None, "root_required": [DISABLED]}),
        (None, 73, {"root_required": [f"OWNER_NOVA,{DISABLED}"]}),
        ((NODE,), 0, {"limit": ["7"], "in_tree": [NODE]}),
        ((NODE, OTHER), 0, {"limit": None, "in_tree": None}),
        ((), 0, {"limit": None, "in_tree": None}),
    ],
)
def test_what_follows_from_the_fleet(bound_to, lowest, parts):
    found = query(a_spec(), Fleet((), lowest, bound_to), scheduler__max_placement_results=7)
    assert {name: found.get(name) for name in parts} == parts


@pytest.mark.parametrize(("lowest", "traits"), [(72, None), (73, ["OWNER_NOVA"])])
def test_devices_are_those_of_nova(lowest, traits):
    card = objects.InstancePCIRequest(count=1, spec=[{}], alias_name="card", request_id=OTHER)
    groups = [a_group(each, resources={"CUSTOM_CARD": 1}) for each in (f"{OTHER}-0", "a-port")]
    requests = objects.InstancePCIRequests(requests=[card])
    spec = a_spec(requested_resources=groups, pci_requests=requests)
    found = query(spec, Fleet((), lowest, None))
    assert (found.get(f"required{OTHER}-0"), found.get("requireda-port")) == (traits, None)


def test_a_tenant_without_the_aggregate_that_it_needs():
    with pytest.raises(errors.NoValidHost, match="Scheduling failed: No hosts available for ten"):
        query(a_spec(project_id="you"), Fleet(AGGREGATES, 0, None), **{TENANTS: True, NEEDED: True})


@pytest.mark.parametrize("option", [ZONES, TENANTS, ISOLATED])
def test_an_aggregate_without_uuid_is_refused_by_its_name(option):
    metadata = {"availability_zone": "z", "filter_tenant_id": "me", "trait:X": "required"}
    spec = a_spec(project_id="me", availability_zone="z")
    aggregate = objects.Aggregate(id=1, name="a", metadata=metadata)
    with pytest.raises(errors.NoValidHost, match="failed: Aggregate a has no uuid, so Placement"):
        query(spec, Fleet((aggregate,), 0, None), **{option: True})


@pytest.mark.parametrize(
    ("disk_format", "is_bfv", "traits"),
    [("qcow2", False, ["COMPUTE_IMAGE_TYPE_QCOW2"]), ("qcow2", True, None), ("gpt", False, None)],
)
def test_the_format_of_the_image_is_a_trait(disk_format, is_bfv, traits):
    spec = a_spec(image={}, is_bfv=is_bfv)
    spec.image.disk_format = disk_format
    assert query(spec, **{IMAGES: True}).get("required") == traits


HOSTS = (
    {"host": "H1", "node": "n1", "uuid": "one"},
    {"host": "H1", "node": "n2", "uuid": "two"},
    {"host": "h2", "node": "n1", "uuid": "three"},
    {"host": "h3", "node": "n1", "uuid": None},
)


def level(**fields):
    return {"request_level_params": objects.RequestLevelParams(**fields)}


def destination(**fields):
    return {"requested_destination": objects.Destination(**fields)}


@pytest.mark.parametrize(
    ("request_fields", "bound_to"),
    [
        pytest.param({}, None, id="anywhere"),
        pytest.param(destination(host="H2"), ("three",), id="a host"),
        pytest.param(destination(host="h1"), ("one", "two"), id="all nodes of a host"),
        pytest.param(destination(host="h1", node="n2"), ("two",), id="a node"),
        pytest.param(destination(node="n2"), ("two",), id="a node without its host"),
        pytest.param(destination(host="h9"), (), id="a host that is not there"),
        pytest.param(destination(host="h3"), (), id="a host whose uuid is not known"),
        pytest.param(destination(), None, id="a destination without a host"),
        pytest.param(
            {**destination(host="h2"), "force_hosts": ["h1"]}, ("three",), id="a host before force"
        ),
        pytest.param({"force_hosts": ["h1"]}, ("one", "two"), id="forced host"),
        pytest.param({"force_nodes": ["n1"]}, ("one", "three"), id="forced nodes"),
        pytest.param({"force_hosts": ["h1"], "force_nodes": ["n1"]}, ("one",), id="forced both"),
        pytest.param({"force_hosts": ["h1", "h2"]}, ("one", "two", "three"), id="forced hosts"),
    ],
)
def test_what_a_request_is_bound_to(request_fields, bound_to):
    assert fleet_of(manager(*HOSTS), a_request(**request_fields)).bound_to == bound_to


DISKS, BANNED = {"DISK_GB"}, destination(forbidden_aggregates={OTHER})


@pytest.mark.parametrize(
    ("spec", "shared", "text"),
    [
        pytest.param({}, (), f"resources={SIZES} in_tree={NODE} limit=1", id="plain"),
        pytest.param(
            {},
            DISKS,
            f"resources=MEMORY_MB:512,VCPU:2 in_tree={NODE} resources_SHARED0=DISK_GB:8 "
            "in_tree_SHARED0= group_policy=",
            id="shared",
        ),
        pytest.param(
            {"resources1:VGPU": "1"},
            DISKS,
            f"in_tree1={NODE} in_tree_SHARED0= group_policy=none",
            id="shared, with groups",
        ),
        pytest.param(
            {"resources1:DISK_GB": "1"}, DISKS, "resources1=DISK_GB:1 in_tree1=", id="in a group"
        ),
        pytest.param({"resources1:VGPU": "1", "group_policy": "isolate"}, DISKS, None, id="apart"),
        pytest.param({"trait:A": "forbidden"}, DISKS, "required_SHARED0=!A", id="shared, a ban"),
        pytest.param({}, {"DISK_GB", "MEMORY_MB", "VCPU"}, None, id="all is shared"),
        pytest.param(NO_ROOM, (), None, id="nothing"),
        pytest.param(
            {**NO_ROOM, "resources1:VGPU": "1"}, (), f"in_tree= in_tree1={NODE}", id="only groups"
        ),
        pytest.param(
            {"requested_resources": [PORT]}, (), f"in_tree={NODE} in_treep1={OTHER}", id="a port's"
        ),
        pytest.param(BANNED, DISKS, f"member_of_SHARED0=!in:{OTHER}", id="shared, not by some"),
    ],
)
def test_what_is_asked_about_one_host(spec, shared, text):
    wanted = a_spec(**spec) if any(key.startswith("requested") for key in spec) else a_spec(spec)
    (wish,) = CandidateQuery(a_conf(), None).wishes(wanted, NO_FLEET)
    found = wish.for_node(NODE, set(shared))
    assert (found is None) is (text is None)
    known = urllib.parse.parse_qs(found or "")
    for part in (text or "").split():
        key, _equals, value = part.partition("=")
        assert known.get(key) == ([value] if value else None)


@pytest.mark.parametrize(
    ("spec", "shared", "resources"),
    [
        ({}, (), {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 8}),
        ({"resources1:VGPU": "1"}, (), {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 8, "VGPU": 1}),
        ({}, DISKS, None),
        ({"trait:X": "required"}, (), None),
        ({"trait:X": "forbidden"}, (), None),
        ({"resources1:VGPU": "1", "group_policy": "isolate"}, (), None),
        (NO_ROOM, (), None),
        (level(root_required={"R"}), (), None),
        (level(root_forbidden={"F"}), (), None),
        (level(same_subtree=[["a", "b"]]), (), None),
        (destination(aggregates=[OTHER]), (), None),
        (BANNED, (), None),
        ({"requested_resources": [a_group("p1", resources={"X": 1}, in_tree=OTHER)]}, (), None),
    ],
)
def test_an_alternate_with_a_flat_tree_needs_no_question(spec, shared, resources):
    """Others do: what is built without one is claimed, and only room is seen by that."""
    wanted = a_spec(**spec) if any(key.startswith("request") for key in spec) else a_spec(spec)
    (wish,) = CandidateQuery(a_conf(), None).wishes(wanted, NO_FLEET)
    built = wish.is_plain and wish.on_root(NODE, set(shared))
    assert (built or {}).get("allocations") == (resources and {NODE: {"resources": resources}})


ALL = {"hints": {"different_host": [NODE]}}
BOTH_WAYS = {"extra_specs": {"hw:cpu_policy": "dedicated"}, "numa_topology": pinned()}


def answered(spec, counts):
    """A query and its wishes for *spec*; they are answered with so many candidates each."""
    request = {"allocations": {NODE: {"resources": {"VCPU": 1}}}, "mappings": {"": [NODE]}}
    answer = {"provider_summaries": {NODE: {"root_provider_uuid": NODE}}}
    answers = ({**answer, "allocation_requests": [request] * count} for count in counts)
    client = SimpleNamespace(candidates=lambda _query, _requester: next(answers))
    query = CandidateQuery(a_conf(scheduler__max_placement_results=2), client)
    return query, query.wishes(a_spec(**spec), NO_FLEET)


@pytest.mark.parametrize(
    ("spec", "counts", "is_all"),
    [
        *(({}, [1], True), ({}, [2], False), (ALL, [2], False), (ALL, [3], True)),
        *((BOTH_WAYS, [2, 1], False), (BOTH_WAYS, [1, 1], True)),
    ],
)
def test_a_list_that_placement_cuts_off_by_itself_is_not_all(spec, counts, is_all):
    query, wishes = answered(spec, counts)
    assert query.listed(wishes, None).is_all is is_all


@pytest.mark.parametrize("counts", [[1], [0, 1]])
def test_a_host_is_asked_about_the_other_way_only_if_it_is_refused(counts):
    query, wishes = answered(BOTH_WAYS, counts)
    assert len(query.asked(wishes, NODE, set(), None).candidates[NODE]) == 1


def test_what_is_read_of_the_fleet():
    found = fleet_of(manager(*({"service": {"version": each}} for each in (74, 73))), a_request())
    assert (found.lowest_version, found.aggregates) == (73, ("a1", "a2"))
