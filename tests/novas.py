"""A Nova in rows: an API database, cell0, and cells with compute hosts, of either layout."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conductor_stub.compute import registration
from scheduler.db import rows, tables
from scheduler.db.databases import CELL0_UUID
from tests import nova_layouts
from tests.nova_layouts import API, CELL, TODAY
from tests.world import databases

#: Makes an empty database and says its URL.
MakeUrl = Callable[[], str]

NODE: Mapping[str, Any] = {
    "vcpus": 8,
    "vcpus_used": 0,
    "memory_mb": 8192,
    "memory_mb_used": 512,
    "free_ram_mb": 7680,
    "local_gb": 100,
    "local_gb_used": 0,
    "free_disk_gb": 90,
    "hypervisor_type": "QEMU",
    "hypervisor_version": 7002000,
    "supported_instances": '[["x86_64", "kvm", "hvm"]]',
    "cpu_info": "{}",
    "cpu_allocation_ratio": 16.0,
    "ram_allocation_ratio": 1.5,
    "disk_allocation_ratio": 1.0,
}


class Nova:
    """The databases of one; ``urls`` by name: ``api``, ``cell0`` and those of the cells."""

    def __init__(
        self, make_url: MakeUrl, release: str = TODAY, *, cells: Mapping[str, Iterable[str]] = {}
    ) -> None:
        """*cells* have these hosts each."""
        self.make_url = make_url
        self.release = release
        self.urls: dict[str, str] = {"api": make_url()}
        nova_layouts.create(self.urls["api"], release, API)
        self.uuids: dict[str, str] = {}
        if release == TODAY:
            self.add_cell("cell0", [], uuid=CELL0_UUID)
        for name, hosts in cells.items():
            self.add_cell(name, hosts)

    def add_cell(
        self,
        name: str,
        hosts: Iterable[str],
        *,
        url: str | None = None,
        disabled: bool = False,
        **mapping: Any,
    ) -> str:
        """A cell with *hosts*, in a database of its own, mapped as *url* or with its URL."""
        self.urls[name] = self.make_url()
        nova_layouts.create(self.urls[name], self.release, CELL)
        self.add_hosts(name, hosts)
        self.uuids[name] = mapping.setdefault("uuid", str(uuid.uuid4()))
        connection = url or self.urls[name]
        values = {"name": name, "database_connection": connection, "transport_url": "none:///"}
        self.change(
            "api", rows.insert, tables.cell_mappings, disabled=disabled, **values, **mapping
        )
        return self.uuids[name]

    def add_main(self, hosts: Iterable[str]) -> None:
        """The one database of a release without cells."""
        self.urls["main"] = self.make_url()
        nova_layouts.create(self.urls["main"], self.release, CELL)
        self.add_hosts("main", hosts)

    def add_hosts(self, name: str, hosts: Iterable[str], **columns: Any) -> None:
        """Compute hosts with a living service and one node each."""
        names = list(hosts)
        self.change(name, registration.put_services, names, 74)
        values = {**NODE, **columns}
        nodes = [{**values, "host": host, "hypervisor_hostname": host} for host in names]
        self.change(name, registration.put_nodes, nodes)

    def change(
        self, database_name: str, function: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> Any:
        """Call a function of the row modules on the database of that name."""
        url = self.urls[database_name]
        with databases.opened(url) as database, database.write() as connection:
            return function(connection, *arguments, **named)

    def map_cell(self, name: str, **values: Any) -> None:
        table = tables.cell_mappings
        self.change("api", rows.update, table, table.c.uuid == self.uuids[name], **values)

    def add_aggregate(self, number: int, name: str, host: str, database: str = "api") -> None:
        """An aggregate of one host, of the API database or of the main one."""
        deleted = ("", "") if database == "api" else (", deleted", ", 0")
        columns, values = deleted
        for statement in (
            f"INSERT INTO aggregates (id, name{columns}) VALUES ({number}, '{name}'{values})",
            f"INSERT INTO aggregate_hosts (aggregate_id, host{columns}) "
            f"VALUES ({number}, '{host}'{values})",
        ):
            self.execute(database, statement)

    def execute(self, name: str, statement: str) -> list[Any]:
        """Run one statement; its rows, if it has any."""
        with databases.transaction(self.urls[name]) as connection:
            result = connection.exec_driver_sql(statement)
            return list(result) if result.returns_rows else []
