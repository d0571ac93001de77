"""The rooms of the house know only the rooms below them."""

import re
import sys

import pytest

from tests.house.tree import ROOT, imports_of, module_of, name_of, python_files

#: From the ground up.  A room may import from every level below its own.
LEVELS = (
    frozenset({"errors", "concurrency", "exit_codes", "threads", "daemon.worker_table"}),
    frozenset({"plugins", "objects", "web"}),
    frozenset({"pci"}),
    frozenset({"numa"}),
    frozenset({"conf"}),
    frozenset({"db", "semantics"}),
    frozenset({"hosts"}),
    frozenset({"filters", "weights"}),
    frozenset({"engine"}),
    frozenset({"explain"}),
    frozenset({"idempotency"}),
    frozenset({"claims"}),
    frozenset({"drivers", "rpc"}),
    frozenset({"replay"}),
    frozenset({"recording"}),
    frozenset({"broker", "notifications", "planning"}),
    frozenset({"builds"}),
    frozenset({"manager", "nova_compat", "shadow"}),
    frozenset({"evaluation", "introspection", "metrics", "status_page", "testing"}),
    frozenset({"daemon"}),
    frozenset({"cli"}),
    frozenset({"cmd"}),
)
LEVEL_OF = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}


def room_of(module):
    """The room of a module below ``scheduler``; None for the package itself and for strangers.

    A module that lies lower than the rest of its package is a room of its own.
    """
    parts = module.split(".")
    if parts[0] != "scheduler":
        return None
    names = (".".join(parts[1:3]), ".".join(parts[1:2]))
    return next((name for name in names if name in LEVEL_OF), None)


def test_every_room_has_a_level():
    modules = [module_of(path).split(".") for path in python_files("scheduler")]
    assert {rest[0] for _scheduler, *rest in modules if rest} <= LEVEL_OF.keys()


def test_the_page_has_these_levels():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d+\. ((?:`\w+`(?:, )?)+)$", page, re.MULTILINE)
    levels = [{each for each in rooms if "." not in each} for rooms in LEVELS]
    assert [set(re.findall(r"\w+", line)) for line in listed] == levels[::-1]


def may_import(importer, imported):
    room, other = room_of(importer), room_of(imported)
    if room is None or other is None or room == other:
        return True
    return LEVEL_OF[other] < LEVEL_OF[room]


def test_imports_go_one_way():
    upwards = [
        f"{name_of(path)} imports {imported}"
        for path in python_files("scheduler")
        for imported in imports_of(path)
        if not may_import(module_of(path), imported)
    ]
    assert upwards == []


def test_the_engine_is_pure():
    """It knows numpy and Python, but no bus, database or configuration, and nothing that waits."""
    known = {*sys.stdlib_module_names, "numpy", "scheduler"} - {"asyncio"}
    forbidden = ("scheduler.rpc", "scheduler.db", "scheduler.conf", "scheduler.concurrency")
    impure = [
        f"{name_of(path)} imports {imported}"
        for path in python_files("scheduler")
        if module_of(path).startswith("scheduler.engine")
        for imported in imports_of(path)
        if imported.startswith(forbidden) or imported.split(".")[0] not in known
    ]
    assert impure == []


@pytest.mark.parametrize(
    ("package", "strangers"),
    [
        ("scheduler", ("conductor_stub", "tests", "benchmarks", "manual")),
        ("conductor_stub", ("tests", "benchmarks", "manual")),
    ],
)
def test_the_packages_do_not_know_what_is_built_on_them(package, strangers):
    knowing = [
        name_of(path)
        for path in python_files(package)
        if any(imported.split(".")[0] in strangers for imported in imports_of(path))
    ]
    assert knowing == []
