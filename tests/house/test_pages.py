"""What pages list is what there is: alerts, names that plug-ins may import."""

import importlib
import re

import pytest
import yaml

from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates
from tests.house.tree import PACKAGES, ROOT, imports_of, name_of, python_files

DOCS = ROOT / "docs"
FOLDERS = (*PACKAGES, "tests", "benchmarks", "docs", "etc", "manual", "systemd")
PAGES = [path for path in DOCS.rglob("*.md") if "evidence" not in path.parts]
PARTS = ("**Meaning.**", "**Impact.**", "**Diagnosis", "itigation.**")


def text(page):
    return (DOCS / page).read_text(encoding="utf-8")


def alerts():
    rules = (ROOT / "etc/prometheus/nova-scheduler.rules.yml").read_text(encoding="utf-8")
    [group] = yaml.safe_load(rules)["groups"]
    return [rule["alert"] for rule in group["rules"]]


def test_every_alert_has_a_runbook_and_no_other_has():
    sections = re.split(r"^## ", text("runbooks.md"), flags=re.MULTILINE)[1:]
    assert [section.split("\n")[0] for section in sections] == alerts()
    lacking = [each.split("\n")[0] for each in sections if not all(part in each for part in PARTS)]
    assert lacking == []


def names():
    """Module and name of everything that plug-ins may import."""
    rows = re.findall(r"^\| `(scheduler[\w.]*)` \| (`.*`.*) \|$", text("api-stability.md"), re.M)
    return [(module, name) for module, cell in rows for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize(("module", "name"), names(), ids=".".join)
def test_plug_ins_can_import_what_the_page_says(module, name):
    assert hasattr(importlib.import_module(module), name)


def test_the_examples_import_nothing_else():
    modules = re.findall(r"^\| `(scheduler[\w.]*)` \|", text("api-stability.md"), re.MULTILINE)
    known = {*modules, *map(".".join, names())}
    examples = [path for path in python_files("docs") if path.parent.name == "examples"]
    found = {
        imported: name_of(path)
        for path in examples
        for imported in imports_of(path)
        if imported.split(".")[0] == "scheduler"
    }
    assert found
    assert {each: path for each, path in found.items() if each not in known} == {}


def test_the_columns_that_the_page_lists_are_there():
    _before, table = text("api-stability.md").split("| from `hosts` | names |")
    cells = " ".join(re.findall(r"\| ([^|]*) \|$", table, re.MULTILINE))
    listed = set(re.findall(r"`(\w+)`", cells))
    of_table = {*columns.COLUMN_TYPES, *columns.TEXT_COLUMNS, *columns.DOCUMENT_PARSERS}
    assert {each for each in listed if each not in of_table} == {"service_up"}
    assert hasattr(Candidates, "service_up")
    assert listed >= {*columns.INT_COLUMNS, *columns.FLOAT_COLUMNS, *columns.TEXT_COLUMNS}


def test_every_file_that_a_page_names_exists():
    missing = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *PAGES):
        content = page.read_text(encoding="utf-8")
        for name in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", content):
            if not (ROOT / name).exists():
                missing.append(f"{page.name}: {name}")
    assert missing == []
