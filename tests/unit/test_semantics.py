"""The entries of the semantics, and that the compatibility page has them all."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import re
from types import SimpleNamespace

import pytest

from scheduler import errors, numa, objects, pci, semantics
from scheduler.hosts.rows import Ratios
from scheduler.semantics import CURRENT, NEWTON
from tests.builders import a_conf

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "compatibility.md"
BOTH = pytest.mark.parametrize("chosen", [CURRENT, NEWTON], ids=["current", "newton"])
UPDATED, CREATED = (datetime.datetime(2026, 1, day) for day in (2, 1))


def conf_of(name):
    conf = a_conf()
    conf.set_override("semantics", name, group="scheduler")
    return conf


def test_the_option_chooses():
    assert semantics.from_conf(a_conf()) is CURRENT
    assert semantics.from_conf(conf_of("newton")) is NEWTON
    assert semantics.from_conf(conf_of("current")) is CURRENT
    with pytest.raises(ValueError, match="juno"):
        conf_of("juno")


def test_every_entry_differs():
    names = [field.name for field in dataclasses.fields(semantics.Semantics)]

    assert [name for name in names if getattr(CURRENT, name) == getattr(NEWTON, name)] == []


def test_the_compatibility_page_lists_every_entry_in_order():
    listed = re.findall(r"^\* \*\*`(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    kinds = (semantics.Semantics, numa.NumaSemantics, pci.PciSemantics)
    entries = [field.name for kind in kinds for field in dataclasses.fields(kind)]

    assert listed == [name for name in entries if name != "pci"]


@pytest.mark.parametrize(
    ("chosen", "last_seen_up", "updated_at", "heartbeat"),
    [
        (CURRENT, UPDATED, None, UPDATED),
        (CURRENT, None, UPDATED, CREATED),
        (NEWTON, CREATED, UPDATED, CREATED),
        (NEWTON, None, UPDATED, UPDATED),
        (NEWTON, None, None, CREATED),
    ],
)
def test_the_last_heartbeat(chosen, last_seen_up, updated_at, heartbeat):
    service = SimpleNamespace(last_seen_up=last_seen_up, updated_at=updated_at, created_at=CREATED)

    assert chosen.last_heartbeat(service) == heartbeat


@pytest.mark.parametrize(
    ("name", "options", "ratios"),
    [
        ("current", {}, Ratios(4.0, 1.0, 1.0)),
        ("newton", {}, Ratios(16.0, 1.5, 1.0)),
        ("newton", {"initial_cpu_allocation_ratio": 3.0}, Ratios(16.0, 1.5, 1.0)),
        ("newton", {"cpu_allocation_ratio": 2.0}, Ratios(2.0, 1.5, 1.0)),
        ("newton", {"cpu_allocation_ratio": 0.0}, Ratios(16.0, 1.5, 1.0)),
    ],
)
def test_ratios_that_nobody_set(name, options, ratios):
    conf = conf_of(name)
    for option, value in options.items():
        conf.set_override(option, value)

    assert Ratios.from_conf(conf) == ratios


@pytest.mark.parametrize(
    ("wanted", "node", "current", "newton"),
    [
        ("n1", "n1", True, True),
        ("n1", "n2", False, False),
        ("n1", "N1", False, False),
        (None, "n1", True, False),
        ("", "n1", True, False),
        (None, None, True, True),
    ],
)
def test_the_node_of_a_destination(wanted, node, current, newton):
    assert CURRENT.destination_node(wanted, node) is current
    assert NEWTON.destination_node(wanted, node) is newton


@pytest.mark.parametrize(
    ("requirement", "version"),
    [(">=6.0", 6), ("<3", 2005000), (">=1.2", 1002003004), (">=2.5,<3", 2005000)],
)
def test_versions_that_newton_cannot_read(requirement, version):
    assert CURRENT.version_test(requirement)(version) in (True, False)
    with pytest.raises(errors.InvalidRequest, match="two or three numbers"):
        NEWTON.version_test(requirement)(version)


@BOTH
@pytest.mark.parametrize(
    ("requirement", "version", "satisfied"),
    [
        (">=2.5", 2005000, True),
        (" >= 2.6 , < 3.0", 2005000, False),
        ("!=2.5", 2005000, False),
        (">=9.0", 0, True),
        ("<2.5a1", 2004009, True),
    ],
)
def test_versions_that_both_read(chosen, requirement, version, satisfied):
    assert chosen.version_test(requirement)(version) is satisfied


@BOTH
@pytest.mark.parametrize("requirement", ["2.5", "~>2.5", "=2.5"])
def test_requirements_that_nobody_reads(chosen, requirement):
    with pytest.raises(errors.InvalidRequest, match="img_hv_requested_version"):
        chosen.version_test(requirement)


def test_the_id_of_an_image():
    named, nameless = objects.ImageMeta(id="i1"), objects.ImageMeta()

    assert [CURRENT.image_id(image) for image in (None, named, nameless)] == [None, "i1", None]
    assert [NEWTON.image_id(image) for image in (None, named)] == [None, "i1"]
    with pytest.raises(errors.InvalidRequest, match="image.id"):
        NEWTON.image_id(nameless)


@pytest.mark.parametrize(
    ("key", "current", "newton"),
    [
        ("filter_tenant_id", True, True),
        ("filter_tenant_id2", True, False),
        ("filter_tenant", False, False),
        ("Filter_tenant_id", False, False),
    ],
)
def test_tenant_keys(key, current, newton):
    assert CURRENT.is_tenant_key(key) is current
    assert NEWTON.is_tenant_key(key) is newton
