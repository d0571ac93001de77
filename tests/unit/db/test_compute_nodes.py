from __future__ import annotations

import json

import pytest

from scheduler import errors, objects
from scheduler.db import compute_nodes
from scheduler.db.tables import compute_nodes as table
from tests.unit.db.builders import NOW, age, columns, delete_host, is_fresh, node_values

UUID = "f4a0f8c0-0000-4000-8000-000000000001"


def test_new_row_has_the_application_s_defaults(conn):
    node_id = compute_nodes.upsert(conn, "h1", "n1", node_values())
    (row,) = columns(conn, table)
    assert (row["id"], row["host"], row["hypervisor_hostname"]) == (node_id, "h1", "n1")
    assert (row["vcpus_used"], row["memory_mb_used"], row["local_gb_used"]) == (0, 0, 0)
    assert (row["mapped"], row["stats"], row["cpu_info"], row["deleted"]) == (0, "{}", "", 0)
    assert len(row["uuid"]) == 36
    assert row["updated_at"] is None


def test_second_upsert_changes_only_what_it_names(conn):
    first = compute_nodes.upsert(conn, "h1", "n1", node_values(free_ram_mb=100))
    before = columns(conn, table)[0]
    assert compute_nodes.upsert(conn, "h1", "n1", {"vcpus": 16}) == first
    after = columns(conn, table)[0]
    assert {name for name in after if after[name] != before[name]} == {"vcpus", "updated_at"}
    assert is_fresh(after["updated_at"])


def test_many_at_once_keep_their_order(conn):
    compute_nodes.upsert(conn, "h2", "n2", node_values())
    nodes = [
        node_values(host=f"h{n}", hypervisor_hostname=f"n{n}", **({"running_vms": 1} if n else {}))
        for n in range(4)
    ]
    ids = compute_nodes.upsert_many(conn, nodes)
    by_id = {node.id: node.host for node in compute_nodes.list_all(conn)}
    assert [by_id[node_id] for node_id in ids] == ["h0", "h1", "h2", "h3"]


def test_several_nodes_of_one_host(conn):
    for node in ("n1", "n2"):
        compute_nodes.upsert(conn, "h1", node, node_values())
    compute_nodes.upsert(conn, "h2", "n1", node_values())
    found = compute_nodes.list_all(conn, host="h1")
    assert [node.hypervisor_hostname for node in found] == ["n1", "n2"]


def test_documents_become_json_and_fields(conn):
    pools = objects.PciDevicePoolList(
        objects=[objects.PciDevicePool(vendor_id="8086", product_id="1572", count=2)]
    )
    values = node_values(
        stats={"num_instances": "2"},
        supported_instances=[["x86_64", "qemu", "hvm"]],
        pci_stats=pools,
        cpu_info={"arch": "x86_64"},
        host_ip="10.0.0.11",
        ram_allocation_ratio=1.5,
    )
    compute_nodes.upsert(conn, "h1", "n1", values)
    node = compute_nodes.get(conn, "h1", "n1")
    assert node.stats == {"num_instances": "2"}
    assert [spec.to_list() for spec in node.supported_hv_specs] == [["x86_64", "qemu", "hvm"]]
    assert [pool.count for pool in node.pci_device_pools] == [2]
    assert json.loads(node.cpu_info) == {"arch": "x86_64"}
    assert (str(node.host_ip), node.ram_allocation_ratio) == ("10.0.0.11", 1.5)
    (row,) = columns(conn, table)
    assert row["supported_instances"] == '[["x86_64", "qemu", "hvm"]]'
    assert row["host_ip"] == "10.0.0.11"


def test_row_of_an_old_or_broken_compute_is_readable(conn, caplog):
    compute_nodes.upsert(conn, "h1", "n1", node_values(stats="no json", mapped=None))
    node = compute_nodes.get(conn, "h1", "n1")
    assert not node.is_set("stats")
    assert not node.is_set("cpu_allocation_ratio")
    assert node.pci_device_pools is None
    assert "Compute node n1 of host h1: stats is not JSON" in caplog.text


def test_usage(conn):
    node_id = compute_nodes.upsert(conn, "h1", "n1", node_values())
    compute_nodes.update_usage(conn, node_id, {"vcpus_used": 3, "stats": {"a": "1"}}, NOW)
    (row,) = columns(conn, table)
    assert (row["vcpus_used"], row["stats"], row["updated_at"]) == (3, '{"a": "1"}', NOW)
    age(conn, table)
    compute_nodes.update_usage(conn, node_id, {"vcpus_used": 4})
    assert is_fresh(columns(conn, table)[0]["updated_at"])


def test_deleted_node_comes_back_into_its_row_by_uuid(conn):
    node_id = compute_nodes.upsert(conn, "h1", "n1", node_values(uuid=UUID))
    delete_host(conn, "h1")
    assert columns(conn, table)[0]["deleted"] == node_id
    assert compute_nodes.list_all(conn) == []
    assert compute_nodes.upsert(conn, "h9", "n1", node_values(uuid=UUID)) == node_id
    (row,) = columns(conn, table)
    assert (row["deleted"], row["deleted_at"], row["host"]) == (0, None, "h9")
    delete_host(conn, "h9")
    assert compute_nodes.upsert(conn, "h9", "n1", node_values()) != node_id


def test_uuid_of_another_living_node_is_refused(conn):
    compute_nodes.upsert(conn, "h1", "n1", node_values(uuid=UUID))
    with pytest.raises(errors.AlreadyExists), conn.begin_nested():
        compute_nodes.upsert(conn, "h2", "n2", node_values(uuid=UUID))


@pytest.mark.parametrize(
    "call",
    [
        lambda conn: compute_nodes.get(conn, "h1", "no"),
        lambda conn: compute_nodes.get(conn, "no", "n1", for_update=True),
        lambda conn: compute_nodes.update_usage(conn, 999, {"vcpus_used": 1}),
    ],
)
def test_missing_node(conn, call):
    compute_nodes.upsert(conn, "h1", "n1", node_values())
    with pytest.raises(errors.ComputeHostNotFound):
        call(conn)

    assert compute_nodes.get(conn, "h1", "n1", for_update=True).vcpus == 8
