"""What tests of this project need besides the builders of ``scheduler.testing``."""

import datetime
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from oslo_config import cfg
from sqlalchemy import Connection

from conductor_stub.compute import registration
from scheduler import conf as options
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.hosts.table import HostTable
from scheduler.testing import (
    FLAVOR,
    HOST,
    NOW,
    OWN_UUID,
    a_fleet,
    a_host,
    a_request,
    verdict,
)

__all__ = [
    "FLAVOR",
    "HOST",
    "NOW",
    "OWN_UUID",
    "a_conf",
    "a_fleet",
    "a_host",
    "a_request",
    "an_instance_row",
    "candidates",
    "examples",
    "names",
    "put_node",
    "verdict",
]


def a_conf(**overrides: Any) -> cfg.ConfigOpts:
    """Every option at its default but those given: of ``[filter_scheduler]``, or group__name."""
    parts = {tuple(name.rpartition("__")[::2]): value for name, value in overrides.items()}
    return options.detached(
        {(group or "filter_scheduler", name): value for (group, name), value in parts.items()}
    )


def examples(count: int) -> int:
    """So many examples of a property, and many more at night."""
    return count * int(os.environ.get("EXAMPLES_TIMES", "1"))


def candidates(table: HostTable, now: float = NOW, down_seconds: float = 60.0) -> Candidates:
    """All hosts of *table*, in order, at the moment *now*."""
    return Candidates(Scope(table, now, down_seconds), table.order)


def names(hosts: Candidates) -> list[str]:
    return [state.host for state in hosts.states()]


def put_node(connection: Connection, host: str, node: str, values: Mapping[str, Any]) -> int:
    """Insert a row of ``compute_nodes`` or update the columns in *values*; its id."""
    named = {**values, "host": host, "hypervisor_hostname": node}
    return registration.put_nodes(connection, [named])[0]


def an_instance_row(uuid: str, host: str | None, updated_at: float = 0, **columns: Any) -> Any:
    """A row of ``instances`` as it is read; *updated_at* in seconds since the epoch."""
    epoch = datetime.datetime(1970, 1, 1)
    values = {
        "uuid": uuid,
        "host": host,
        "node": None,
        "vm_state": "active",
        "task_state": None,
        "deleted": 0,
        "instance_type_id": 7,
        "created_at": epoch,
        "updated_at": epoch + datetime.timedelta(seconds=updated_at),
    }
    return SimpleNamespace(**{**values, **columns})
