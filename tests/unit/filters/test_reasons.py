"""Each reason of each filter, and what else a filter says; Nova's recordings show what passes."""

import json
import logging
import math

import pytest

from scheduler import errors, filters, objects
from scheduler.filters.affinity_filter import within
from scheduler.filters.extra_specs_ops import match
from scheduler.hosts.instances import TrackedInstance
from tests.builders import NOW, OWN_UUID, a_conf, a_fleet, a_host, a_request, candidates, verdict
from tests.unit.filters.judging import judge
from tests.unit.numa.builders import cell, devices, guest, host, want

BY_NAME = {cls.__name__: cls for cls in filters.all_filters()}
U1, U2 = (f"aaaaaaaa-0000-4000-a000-00000000000{number}" for number in (1, 2))
RAM, DISK, CORE = (f"{name}_allocation_ratio" for name in ("ram", "disk", "cpu"))
IO_OPS, INSTANCES = "max_io_ops_per_host", "max_instances_per_host"
TENANT, SCOPE = "filter_tenant_id", "aggregate_instance_extra_specs"
AFFINITY, ANTI = {"policy": "affinity"}, {"policy": "anti-affinity"}
POWER, BITS = [["ppc64le", "kvm", "hvm"]], {"maxphysaddr": {"bits": 45}}
X86 = {"hw_architecture": "x86_64"}
NEWTON = {"scheduler__semantics": "newton"}
NIC = {"vendor_id": "8086", "product_id": "10ed", "count": 2}


def of(*metadata, **columns):
    """A host whose aggregates have these metadata."""
    return {"aggregates": list(metadata), **columns}


def flavor(**fields):
    return {"flavor": fields}


def specs(**extra_specs):
    return flavor(extra_specs=extra_specs)


def cells(*wanted, **fields):
    return {"numa_topology": guest(*wanted).to_object(), **fields}


def near(address, **hints):
    return {"hints": {"build_near_host_ip": [address], **hints}}


# filter, host, request, code of the reason or nothing, options
ROWS = [
    ("AllHostsFilter", {"total_usable_ram_mb": 0}, flavor(memory_mb=9**9), ""),
    ("RamFilter", {RAM: 10.0}, flavor(memory_mb=4096), ""),
    ("RamFilter", {RAM: 10.0}, flavor(memory_mb=4097), "ram.physical"),
    ("RamFilter", {"free_ram_mb": -1536}, flavor(memory_mb=512), ""),
    ("RamFilter", {"free_ram_mb": -1536}, flavor(memory_mb=513), "ram.insufficient"),
    ("RamFilter", {RAM: math.nan}, flavor(memory_mb=1), "ram.insufficient"),
    ("AggregateRamFilter", of({RAM: "10"}), flavor(memory_mb=4097), "aggregate_ram.physical"),
    ("AggregateRamFilter", of({RAM: "0.5"}), flavor(memory_mb=4096), "aggregate_ram.insufficient"),
    ("AggregateRamFilter", of({RAM: "0.5"}, {RAM: "x"}), flavor(memory_mb=4096), ""),
    ("ExactRamFilter", {}, flavor(memory_mb=4095), "exact_ram.different"),
    ("DiskFilter", {DISK: 10.0}, flavor(root_gb=100, swap=1), "disk.physical"),
    ("DiskFilter", {}, {**flavor(root_gb=101), "is_bfv": True}, "disk.physical"),
    ("DiskFilter", {"free_disk_mb": 1023}, flavor(root_gb=1), "disk.insufficient"),
    ("DiskFilter", {DISK: math.nan}, {}, "disk.insufficient"),
    ("AggregateDiskFilter", of({DISK: "9"}), flavor(root_gb=101), "aggregate_disk.physical"),
    ("AggregateDiskFilter", of({DISK: "0.5"}), flavor(root_gb=51), "aggregate_disk.insufficient"),
    ("ExactDiskFilter", {}, flavor(root_gb=99), "exact_disk.different"),
    ("CoreFilter", {}, flavor(vcpus=5), "core.physical"),
    ("CoreFilter", {"vcpus_used": 61}, flavor(vcpus=4), "core.insufficient"),
    ("CoreFilter", {CORE: math.nan}, flavor(vcpus=1), "core.insufficient"),
    ("CoreFilter", {CORE: 0.0}, flavor(vcpus=5), "core.insufficient"),
    ("CoreFilter", {"vcpus_total": 0, "vcpus_used": 9}, flavor(vcpus=99), ""),
    ("AggregateCoreFilter", of({CORE: "10"}), flavor(vcpus=5), "aggregate_core.physical"),
    ("AggregateCoreFilter", of({CORE: "0"}), flavor(vcpus=2), "aggregate_core.insufficient"),
    ("ExactCoreFilter", {}, flavor(vcpus=3), "exact_core.different"),
    ("ExactCoreFilter", {"vcpus_total": 0}, flavor(vcpus=0), "exact_core.unknown"),
    ("IoOpsFilter", {"num_io_ops": 8}, {}, "io_ops.busy"),
    ("IoOpsFilter", {"num_io_ops": 8}, {}, "", {IO_OPS: 9}),
    ("AggregateIoOpsFilter", of({IO_OPS: "10"}, {IO_OPS: "9"}, num_io_ops=9), {},
     "aggregate_io_ops.busy"),
    ("AggregateIoOpsFilter", of({IO_OPS: "1"}, {IO_OPS: "5.0"}, num_io_ops=2), {}, ""),
    ("NumInstancesFilter", {"num_instances": 50}, {}, "num_instances.full"),
    ("AggregateNumInstancesFilter", of({INSTANCES: " 5 "}, num_instances=5), {},
     "aggregate_num_instances.full"),
    ("AvailabilityZoneFilter", of({"availability_zone": "z1, z2"}), {"availability_zone": "z2"},
     ""),
    ("AvailabilityZoneFilter", {}, {"availability_zone": "z1"}, "availability_zone.other"),
    ("AggregateMultiTenancyIsolation", of({TENANT: "p2"}), {"project_id": "p1"},
     "multitenancy.other"),
    ("AggregateMultiTenancyIsolation", of({f"{TENANT}2": "p2"}), {"project_id": "p1"},
     "multitenancy.other"),
    ("AggregateMultiTenancyIsolation", of({f"{TENANT}2": "p2"}), {"project_id": "p1"}, "",
     NEWTON),
    ("AggregateImagePropertiesIsolation", of({"os_type": "linux"}),
     {"image": {"os_type": "windows"}}, "image_isolation.other"),
    ("AggregateInstanceExtraSpecsFilter", of({"a:b": "1"}), specs(**{f"{SCOPE}:a:b": "1"}), ""),
    ("AggregateInstanceExtraSpecsFilter", of({"b": "1"}), specs(**{f"{SCOPE}:a:b": "1"}),
     "aggregate_specs.missing"),
    ("AggregateInstanceExtraSpecsFilter", of({"n": "5"}), specs(n=">= 6"),
     "aggregate_specs.refused"),
    ("AggregateInstanceExtraSpecsFilter", of({"n": "5"}),
     specs(**{f"{SCOPE}:n": ">= 6", "n": ">= 4"}), "aggregate_specs.refused"),
    ("AggregateTypeAffinityFilter", of({"instance_type": "m1.small"}), {},
     "aggregate_type.not_named"),
    ("AggregateTypeAffinityFilter", of({"instance_type": "m1.tiny"}), {}, ""),
    ("ComputeFilter", {"service": {"disabled": True}, "last_seen": NOW - 99}, {},
     "compute.disabled"),
    ("ComputeFilter", {"last_seen": NOW - 60}, {}, ""),
    ("ComputeFilter", {"last_seen": NOW - 60.5}, {}, "compute.down"),
    ("ComputeFilter", {"last_seen": NOW + 62}, {}, "compute.down"),
    ("ComputeCapabilitiesFilter", {}, specs(nosuch="x"), ""),
    ("ComputeCapabilitiesFilter", {}, specs(**{"capabilities:nosuch": ">= abc", "a": "x"}),
     "capabilities.missing"),
    ("ComputeCapabilitiesFilter", {}, specs(free_ram_mb=">= 999999"), "capabilities.refused"),
    ("ComputeCapabilitiesFilter", {"cpu_info": "[]"}, specs(**{"capabilities:cpu_info:a": "1"}),
     "capabilities.missing"),
    ("ImagePropertiesFilter", {"supported_instances": [None, "x"]}, {"image": X86},
     "image.unsupported"),
    ("ImagePropertiesFilter", {"supported_instances": []}, {"image": X86}, "image.unknown"),
    ("ImagePropertiesFilter", {"hypervisor_version": 2005000},
     {"image": {**X86, "img_hv_requested_version": ">=2.6"}}, "image.hypervisor_version"),
    ("ImagePropertiesFilter", {"cpu_info": json.dumps(BITS)},
     {"image": {**X86, "hw_maxphysaddr_bits": 46}}, "image.address_bits"),
    ("ImagePropertiesFilter", {"cpu_info": json.dumps({"maxphysaddr": {"bits": "9" * 5000}})},
     {"image": {**X86, "hw_maxphysaddr_bits": 46}}, ""),
    ("ImagePropertiesFilter", {}, {"image": {}}, "image.unsupported",
     {"image_properties_default_architecture": "aarch64"}),
    ("DifferentHostFilter", {"instances": [U1]}, {"hints": {"different_host": [U2, U1]}},
     "different_host.present"),
    ("SameHostFilter", {"instances": [U1]}, {"hints": {"same_host": [U2]}}, "same_host.absent"),
    ("SameHostFilter", {"instances": [U1]}, {"hints": {"same_host": [""]}}, ""),
    ("SimpleCIDRAffinityFilter", {"host_ip": "192.168.2.1"}, near("192.168.1.1"), "cidr.far"),
    ("SimpleCIDRAffinityFilter", {"host_ip": "fd00::9"}, near("fd00::1", cidr=["/64"]), ""),
    ("ServerGroupAffinityFilter", {}, {"group": {**AFFINITY, "hosts": ["H1"]}},
     "affinity.elsewhere"),
    ("ServerGroupAntiAffinityFilter", {"instances": [U1]}, {"group": {**ANTI, "members": [U1]}},
     "anti_affinity.full"),
    ("ServerGroupAntiAffinityFilter", {"instances": [OWN_UUID, U1]},
     {"group": {**ANTI, "members": [U1]}}, ""),
    ("ServerGroupAntiAffinityFilter", {"instances": [U1]}, {"group": {**ANTI, "members": [U1]}},
     "", NEWTON),
    ("ServerGroupAntiAffinityFilter", {}, {"group": {**ANTI, "hosts": ["h1"]}},
     "anti_affinity.full", NEWTON),
    ("IsolatedHostsFilter", {}, {"image": {}}, "isolated.image_is_not",
     {"isolated_hosts": ["h1"]}),
    ("RetryFilter", {}, {"tried": [("h2", "n2"), ("h1", "n1")]}, "retry.tried"),
    ("RetryFilter", {}, {"tried": [("h1", "n2"), ("h1", None), ("H1", "n1")]}, ""),
    ("RetryFilter", {}, {"retry": objects.SchedulerRetries()}, ""),
    ("JsonFilter", {}, {"hints": {"query": ['[">", "$free_ram_mb", 4096]']}}, "json.no_match"),
    ("JsonFilter", {}, {"hints": {"query": [""]}}, ""),
    ("NUMATopologyFilter", {}, cells(want()), "numa.absent"),
    ("NUMATopologyFilter", {"numa_topology": host(cell())}, cells(want(range(5))), "numa.unfit"),
    ("NUMATopologyFilter", {"numa_topology": host(cell())},
     specs(**{"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}), "numa.threads"),
    ("NUMATopologyFilter", {},
     specs(**{"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"}), ""),
    ("NUMATopologyFilter", {"numa_topology": host(cell())}, cells(want(), pci_requests=devices(1)),
     "numa.unfit", NEWTON),
    ("NUMATopologyFilter", {"numa_topology": host(cell())}, cells(want(), pci_requests=devices(1)),
     ""),
    ("PciPassthroughFilter", {"pci_stats": None}, {"pci_requests": devices(1)}, "pci.unreported"),
    ("PciPassthroughFilter", {"pci_stats": json.dumps([NIC])}, {"pci_requests": devices(3)},
     "pci.lacking"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[3] or 'passes'}")
def test_each_reason(row):
    name, columns, request, reason, *options = row
    assert judge(BY_NAME[name], columns, request, **(options[0] if options else {})) == reason


def test_every_filter_and_reason_is_shown():
    """Those of options of other groups, of other tables and of a server have tests of their own."""
    elsewhere = {"isolated.host_is_not", "metrics.missing", "trusted.other", "type.other"}
    shown = {row[3] for row in ROWS} - {""} | elsewhere
    assert shown == {reason.code for cls in BY_NAME.values() for reason in cls.reasons}


@pytest.mark.parametrize("semantics", ["current", "newton"])
def test_isolated_images(semantics):
    options = {"isolated_images": ["i1"], "scheduler__semantics": semantics}
    isolated, request = BY_NAME["IsolatedHostsFilter"], a_request()
    for image, hosts, reason in (("i1", ["h2"], "isolated.host_is_not"), ("i1", ["h1"], "")):
        request.image = objects.ImageMeta(id=image)
        assert judge(isolated, {}, request, **options, isolated_hosts=hosts) == reason
    request.image = objects.ImageMeta()
    if semantics == "newton":
        with pytest.raises(errors.InvalidRequest, match="image.id"):
            judge(isolated, {}, request, **options, isolated_hosts=["h1"])
    else:
        assert (
            judge(isolated, {}, request, **options, isolated_hosts=["h1"])
            == "isolated.image_is_not"
        )


@pytest.mark.parametrize(("types", "reason"), [([1, 1], ""), ([1, 2], "type.other")])
def test_flavors_on_the_host(types, reason):
    state = a_host()
    for number, instance_type_id in enumerate(types):
        instance = TrackedInstance(f"u{number}", "h1", "n1", instance_type_id=instance_type_id)
        state.table.put_instance("h1", instance.uuid, instance)
    assert judge(BY_NAME["TypeAffinityFilter"], state, flavor(id=1)) == reason


@pytest.mark.parametrize(
    ("metrics", "setting", "reason"),
    [
        (["cpu.percent"], ["cpu.percent=1", "cpu.frequency"], ""),
        (["cpu.percent"], ["cpu.frequency=1", "cpu.percent=2"], "metrics.missing"),
        ([], ["cpu.percent=1"], "metrics.missing"),
    ],
)
def test_metrics(metrics, setting, reason):
    conf = a_conf(metrics__weight_setting=setting)
    common = {"value": 0.5, "timestamp": "2026-01-01T00:00:00", "source": "x"}
    state = a_host(metrics=[{"name": name, **common} for name in metrics])
    assert "".join(verdict(BY_NAME["MetricsFilter"](conf), state, a_request())) == reason


@pytest.mark.parametrize(
    ("cls", "columns", "limits"),
    [
        ("RamFilter", {"free_ram_mb": -1536}, {"memory_mb": 6144.0}),
        ("AggregateRamFilter", of({RAM: "10.0"}, {RAM: "9.0"}), {"memory_mb": 36864.0}),
        ("DiskFilter", {DISK: 2.0}, {"disk_gb": 200.0}),
        ("CoreFilter", {CORE: 0.25}, {"vcpu": 1.0}),
        ("CoreFilter", {"vcpus_total": 0}, {}),
        ("ExactRamFilter", {"free_ram_mb": 512}, {"memory_mb": 4096}),
        ("ExactDiskFilter", {"free_disk_mb": 512}, {"disk_gb": 100}),
        ("ExactCoreFilter", {"vcpus_used": 3}, {"vcpu": 4}),
    ],
)
def test_limits(cls, columns, limits):
    found = BY_NAME[cls](a_conf()).limits(a_host(**columns), a_request())
    assert found == limits
    assert [type(each) for each in found.values()] == [type(each) for each in limits.values()]


@pytest.mark.parametrize(
    ("cls", "columns", "request_", "field"),
    [
        ("ServerGroupAntiAffinityFilter", {},
         {"group": {**ANTI, "rules": {"max_server_per_host": "many"}}}, "InstanceGroup.rules"),
        ("SimpleCIDRAffinityFilter", {}, near("10.0.0.1", cidr=["/33"]), "build_near_host_ip"),
        ("SimpleCIDRAffinityFilter", {}, near("here"), "build_near_host_ip"),
        ("AggregateInstanceExtraSpecsFilter", of({"tier": "gold"}), specs(tier="= 5"),
         "flavor.extra_specs.tier"),
        ("ComputeCapabilitiesFilter", {}, specs(free_ram_mb="<or>"),
         "flavor.extra_specs.free_ram_mb"),
        ("ComputeCapabilitiesFilter", {"cpu_info": json.dumps(BITS)},
         specs(**{"hw:maxphysaddr_bits": "many"}), "flavor.extra_specs.hw:maxphysaddr_bits"),
        ("JsonFilter", {}, {"hints": {"query": ["x"]}}, "scheduler_hints.query"),
    ],
)  # fmt: skip
def test_faults_of_requests_are_named(cls, columns, request_, field):
    with pytest.raises(errors.InvalidRequest) as caught:
        judge(BY_NAME[cls], columns, request_)
    assert field in caught.value.kwargs["field"]


def test_a_version_that_cannot_be_read_is_the_requests_fault():
    request = a_request(image={})
    request.image.properties = objects.ImageMetaProps(**X86)
    request.image.properties.__dict__["img_hv_requested_version"] = "~>2.5"
    with pytest.raises(errors.InvalidRequest, match="img_hv_requested_version"):
        judge(BY_NAME["ImagePropertiesFilter"], {}, request)


@pytest.mark.parametrize(
    ("cls", "columns", "request_", "line"),
    [
        ("CoreFilter", {"vcpus_total": 0}, {}, "VCPUs not set; assuming CPU collection broken"),
        ("ExactCoreFilter", {"vcpus_total": 0}, {}, "VCPUs not set; assuming CPU collection"),
        ("AggregateIoOpsFilter", of({IO_OPS: "x"}), {}, f"Could not decode {IO_OPS}"),
        ("RetryFilter", {}, {"tried": [("h1", "n1")]},
         "Host [('h1', 'n1')] fails.  Previously tried hosts: [('h1', 'n1')]"),
        ("AggregateImagePropertiesIsolation", of({"availability_zone": "z"}), {"image": {}},
         "metadata key 'availability_zone' that is not present in the image metadata."),
    ],
)  # fmt: skip
def test_lines_that_operators_look_for(cls, columns, request_, line, caplog):
    each, state, request = BY_NAME[cls](a_conf()), a_host(**columns), a_request(**request_)
    with caplog.at_level(logging.INFO):
        verdict(each, state, request)
        verdict(each, state, request)
    told = [text for text in caplog.messages if line in text]
    assert told
    assert cls != "AggregateImagePropertiesIsolation" or len(told) == 1


@pytest.mark.parametrize(
    ("namespace", "separator", "reason"),
    [
        *((None, ".", "image_isolation.other"), ("os", "_", "image_isolation.other")),
        *(("os", ".", ""), ("hw", "_", ""), ("os_t", None, "image_isolation.other")),
    ],
)
def test_a_namespace_leaves_out_other_keys(namespace, separator, reason):
    options = {
        "aggregate_image_properties_isolation_namespace": namespace,
        "aggregate_image_properties_isolation_separator": separator,
    }
    columns, request = of({"os_type": "linux", "other": "x"}), {"image": {"os_type": "windows"}}
    found = judge(BY_NAME["AggregateImagePropertiesIsolation"], columns, request, **options)
    assert found == reason


def test_all_nodes_of_a_host_share_its_instances():
    table = a_fleet({"host": "h1", "node": "n1", "instances": [U1]}, {"host": "h1", "node": "n2"})
    request = a_request(group={**ANTI, "members": [U1]})
    [(_reason, mask)] = BY_NAME["ServerGroupAntiAffinityFilter"](a_conf()).conditions(
        candidates(table), request
    )
    assert mask.tolist() == [False, False]


def test_each_host_is_refused_for_what_it_lacks():
    """The version is asked of those that can run the image at all."""
    table = a_fleet(
        {"supported_instances": POWER, "hypervisor_version": 3000000},
        {"hypervisor_version": 2005000},
        {"supported_instances": None},
        {"hypervisor_version": 3000000},
    )
    request = a_request(image={**X86, "img_hv_requested_version": ">=2.6"})
    conditions = BY_NAME["ImagePropertiesFilter"](a_conf()).conditions(candidates(table), request)
    assert {reason.code: mask.tolist() for reason, mask in conditions} == {
        "image.unknown": [True, True, False, True],
        "image.unsupported": [False, True, False, True],
        "image.hypervisor_version": [True, False, True, True],
    }


def test_extra_specs_are_judged_host_by_host_and_in_turn():
    stats = ({"tier": "gold"}, {"tier": "iron"}, {}, {"tier": "gold"})
    table = a_fleet(*[{"stats": each, "free_ram_mb": 1000} for each in stats])
    table.update(table.rows["h4", "n4"], {"free_ram_mb": 10})
    request = a_request(**specs(**{"capabilities:tier": "gold", "free_ram_mb": ">= 100"}))
    capabilities = BY_NAME["ComputeCapabilitiesFilter"](a_conf())
    found = capabilities.conditions(candidates(table), request)
    assert [(reason.code.partition(".")[2], mask.tolist()) for reason, mask in found] == [
        ("missing", [True, True, False, True]),
        ("refused", [True, False, True, True]),
        ("missing", [True, True, True, True]),
        ("refused", [True, True, True, False]),
    ]


@pytest.mark.parametrize(
    ("network", "address", "inside"),
    [
        *(("10.0.0.7/24", "10.0.0.255", True), ("10.0.0.7/24", "10.0.1.0", False)),
        *(("fd00::/8", "fd12::1", True), ("fd00::/8", "10.0.0.1", False)),
        *(("10.0.0.0/8", None, False), ("10.0.0.0/8", "10.0.0", False)),
    ],
)
def test_within_a_network(network, address, inside):
    assert within(network)(address) is inside


@pytest.mark.parametrize(
    ("value", "requirement", "satisfied"),
    [
        *(("gold", "gold", True), ("10", "> 5", False), ("5", ">=5", False), ("x", "", False)),
        *(("6", "= 5", True), ("4", "= 5", False), ("5.0", "== 5", True), ("5", "!= 5", False)),
        *(("-1", ">= 0", False), ("0", "<= -1", False), ("5", ">=", False), (None, "x", False)),
        *(("nan", "== nan", False), ("inf", ">= 99999", True), (None, "!= 5", False)),
        *(("10", "s< 9", True), ("b", "s>= b", True), ("b", "s> b", False), ("x", "s==", False)),
        *(("a", "s<= b", True), ("x", "s== x", True), ("x", "s!= y", True)),
        *(("abcd", "<in> bc zz", True), ("abcd", "<in> ac", False), ("abcd", "<in>", False)),
        *(("['aes', 'vmx']", "<all-in> aes vmx", True), ("['aes']", "<all-in> aes avx", False)),
        *(("b", "<or> a <or> b", True), ("b", "<or> a b", False), ("a", "<or> a <or>", True)),
        *((None, "<or>", False), ("['aes']", "<all-in>", False)),
    ],
)
def test_a_requirement_is_satisfied_or_not(value, requirement, satisfied):
    assert match(value, requirement) is satisfied
