"""Who asks, and in which cell."""

import contextlib
from collections.abc import Iterator
from typing import Any

from nova import context, objects

USER = "user"
PROJECT = "project"


def admin() -> Any:
    return context.get_admin_context()


def tenant() -> Any:
    return context.RequestContext(USER, PROJECT, roles=["member"])


def cell(name: str) -> Any:
    (found,) = [each for each in objects.CellMappingList.get_all(admin()) if each.name == name]
    return found


def cell_of(host: str) -> Any:
    """The mapping of the cell that a host belongs to, as the API database has it."""
    return objects.HostMapping.get_by_host(admin(), host).cell_mapping


@contextlib.contextmanager
def inside(mapping: Any) -> Iterator[Any]:
    """A context whose database is that of a cell."""
    with context.target_cell(admin(), mapping) as targeted:
        yield targeted
