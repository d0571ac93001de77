"""Kinds of hosts, and how a number of hosts is laid out from them."""

import collections

import pytest

from conductor_stub.compute import profiles
from scheduler import errors


def kind(name, **changes):
    return profiles.HostKind(name, vcpus=4, memory_mb=4096, local_gb=40, **changes)


def amounts(plans):
    return dict(collections.Counter(plan.kind.name for plan in plans))


@pytest.mark.parametrize(
    ("kinds", "hosts", "expected"),
    [
        ([kind("a")], 3, {"a": 3}),
        ([kind("a", share=4), kind("b", share=2)], 6, {"a": 4, "b": 2}),
        ([kind("a", share=4), kind("b", share=2)], 3, {"a": 2, "b": 1}),
        ([kind("a", share=1), kind("b", share=1)], 3, {"a": 2, "b": 1}),
        ([kind("a", count=2), kind("b", share=1)], 5, {"a": 2, "b": 3}),
        ([kind("a", count=2), kind("b", count=1)], 3, {"a": 2, "b": 1}),
        ([kind("a", count=0), kind("b", share=1)], 2, {"b": 2}),
        ([kind("a")], 0, {}),
    ],
)
def test_shares_and_counts_add_up_to_the_hosts_wanted(kinds, hosts, expected):
    plans = profiles.Profile(tuple(kinds)).plan(hosts)
    assert amounts(plans) == expected
    assert len({plan.name for plan in plans}) == hosts


@pytest.mark.parametrize(
    ("kinds", "hosts"),
    [
        ([kind("a", count=2)], 3),
        ([kind("a", count=2)], 1),
        ([kind("a", count=4), kind("b", share=1)], 3),
    ],
)
def test_counts_that_do_not_fit_are_refused(kinds, hosts):
    with pytest.raises(errors.ConfigurationError, match=f"but {hosts} are wanted"):
        profiles.Profile(tuple(kinds)).plan(hosts)


def test_names_count_on_and_zones_alternate_within_a_kind():
    profile = profiles.Profile((kind("a", availability_zone=("z1", "z2")), kind("b")))
    plans = profile.plan(120, prefix="rack7")
    assert (plans[0].name, plans[-1].name) == ("rack7-01", "rack7-120")
    zones = [plan.availability_zone for plan in plans if plan.kind.name == "a"]
    assert zones[:4] == ["z1", "z2", "z1", "z2"]
    assert {plan.availability_zone for plan in plans if plan.kind.name == "b"} == {None}


def test_a_zone_is_an_aggregate_and_aggregates_are_merged():
    ssd = {"fast": {"ssd": "true"}}
    plans = [
        profiles.HostPlan("h1", kind("a", aggregates=ssd), "z1"),
        profiles.HostPlan("h2", kind("b", aggregates={"fast": {"nvme": "no"}})),
    ]
    assert plans[0].aggregates == {"fast": {"ssd": "true"}, "z1": {"availability_zone": "z1"}}
    assert profiles.merged_aggregates(plans) == {
        "fast": {"ssd": "true", "nvme": "no"},
        "z1": {"availability_zone": "z1"},
    }
    plans.append(profiles.HostPlan("h3", kind("c", aggregates={"fast": {"ssd": "false"}})))
    with pytest.raises(errors.ConfigurationError, match=r"aggregates\.fast\.ssd.*'true' and 'fals"):
        profiles.merged_aggregates(plans)


def test_the_profiles_that_ship():
    profile = profiles.load(profiles.DEFAULT_FILE)
    plans = profile.plan(profile.natural_size)
    assert len(plans) == 8
    assert len({(plan.kind.vcpus, plan.kind.memory_mb) for plan in plans}) == 3
    assert {plan.availability_zone for plan in plans} == {"az1", "az2"}
    with_cells = profiles.load(profiles.DEFAULT_FILE.with_name("numa_pci.yaml"))
    by_name = {kind.name: kind for kind in with_cells.hosts}
    cell = by_name["numa"].numa_cells[0]
    assert cell.cpus == frozenset({0, 1, 2, 3, 8, 9, 10, 11})
    assert (cell.siblings[0], cell.pages) == (frozenset({0, 8}), {4: 3145728, 2048: 2048})
    assert [pool.count for pool in by_name["accelerated"].pci_pools] == [2, 8]


HOST = "name: a, vcpus: 4, memory_mb: 4096, local_gb: 40"
POOL = "pci_pools: [{vendor_id: %s, product_id: abcd, count: 1, numa_node: 0}]"
CELLS = "numa_cells: [{cpus: 0-3, memory_mb: 4096%s}]"


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("", "", "must be a mapping"),
        ("hosts: []", "hosts", "at least one host"),
        ("hosts: [{%s, count: 0}]", "hosts", "at least one host"),
        ("host: []", "host", "did you mean 'hosts'"),
        ("hosts: [{name: a}]", "hosts[0].vcpus", "is required"),
        ("hosts: [{", "", "expected"),
        ("hosts: [7]", "hosts[0]", "must be a mapping"),
        ("hosts: [{%s}, {%s}]", "hosts", "two kinds are named 'a'"),
    ],
)
def test_a_mistake_of_a_document_is_named(refused, text, where, reason):
    refused(text.replace("%s", HOST), where, reason)


@pytest.mark.parametrize(
    ("more", "where", "reason"),
    [
        ("zzz: 4", ".zzz", "known are name"),
        ("share: 0", ".share", "from 1 to 2147483647"),
        ("share: true", ".share", "from 1 to 2147483647, not True"),
        ("share: 2147483648", ".share", "from 1 to 2147483647"),
        ("ratios: {cpu: .inf}", ".ratios.cpu", "at least 0"),
        ("metrics: {a: -.inf}", ".metrics.a", "a number, not -inf"),
        ("numa_cells: [{cpus: 0-99999999, memory_mb: 1}]", ".numa_cells[0].cpus", "up to 65535"),
        ("share: 1, count: 1", "", "either share or count"),
        ("ratios: {ram: -1}", ".ratios.ram", "at least 0"),
        ("ratios: {mem: 1}", ".ratios.mem", "unknown key"),
        ("stats: {a: []}", ".stats.a", "single value"),
        ("cpu_info: {at: 2026-01-01}", ".cpu_info", "what JSON has: Object of type date"),
        ("supported_instances: [[x86_64, kvm]]", ".supported_instances[0]", "vm mode"),
        (CELLS % ", cpu: 1", ".numa_cells[0].cpu", "mean 'cpus'"),
        (CELLS % ", siblings: [[0, 9]]", ".numa_cells[0].siblings[0]", "not one of the cell's"),
        ("numa_cells: [{cpus: 3-1, memory_mb: 1}]", ".numa_cells[0].cpus", "like '0-3,8'"),
        ("numa_cells: [{cpus: 0-1, memory_mb: 1}]", ".numa_cells", "have 2 cpus, but vcpus is 4"),
        (POOL % "1", ".pci_pools[0].vendor_id", "four hexadecimal digits"),
        (POOL % "abcd", ".pci_pools[0].numa_node", "not one of the numa_cells"),
    ],
)
def test_a_mistake_of_a_kind_is_named(refused, more, where, reason):
    refused(f"hosts: [{{{HOST}, {more}}}]", f"hosts[0]{where}", reason)


@pytest.fixture
def refused(tmp_path):
    """Check that a document is refused, with the file, the key and the reason."""

    def check(text, where, reason):
        file = tmp_path / "fleet.yaml"
        file.write_text(text)
        with pytest.raises(errors.ConfigurationError) as caught:
            profiles.load(file)
        assert caught.value.kwargs["option"] == (f"{file}: {where}" if where else str(file))
        assert reason in caught.value.kwargs["reason"]

    return check


def test_a_full_kind_is_read(tmp_path):
    file = tmp_path / "fleet.yaml"
    full = (
        ", count: 2, ratios: {cpu: 2, disk: 1.5}, hypervisor_type: ironic, hypervisor_version: 1,"
        " cpu_info: {arch: aarch64}, supported_instances: [[aarch64, kvm, hvm]],"
        " metrics: {cpu.percent: 0.5}, availability_zone: z1, aggregates: {g: {n: 1}},"
        " stats: {boot: local, ssd: true}"
    )
    with pytest.raises(errors.ConfigurationError, match=r"fleet\.yaml: No such file"):
        profiles.load(file)
    file.write_text(f"hosts: [{{{HOST}{full}}}]")
    (found,) = profiles.load(file).hosts
    assert (found.count, found.ratios) == (2, profiles.Ratios(cpu=2.0, disk=1.5))
    assert (found.hypervisor_type, found.hypervisor_version) == ("ironic", 1)
    assert found.supported_instances == (("aarch64", "kvm", "hvm"),)
    assert found.availability_zone == ("z1",)
    assert found.aggregates == {"g": {"n": "1"}}
    assert found.stats == {"boot": "local", "ssd": "True"}
