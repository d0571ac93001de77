"""The semantics: the compatibility page has all entries, and odd versions and ratios.

The recorded decisions show every entry.
"""

import dataclasses
import pathlib
import re

import pytest

from scheduler import errors, numa, pci, semantics
from scheduler.semantics import CURRENT, NEWTON
from tests.builders import a_conf

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "compatibility.md"
BOTH = pytest.mark.parametrize("chosen", [CURRENT, NEWTON], ids=["current", "newton"])


def test_the_option_chooses():
    assert semantics.from_conf(a_conf()) is CURRENT
    assert semantics.from_conf(a_conf(scheduler__semantics="newton")) is NEWTON
    assert semantics.from_conf(a_conf(scheduler__semantics="current")) is CURRENT
    with pytest.raises(ValueError, match="juno"):
        a_conf(scheduler__semantics="juno")


def test_every_entry_differs():
    names = [field.name for field in dataclasses.fields(semantics.Semantics)]

    assert [name for name in names if getattr(CURRENT, name) == getattr(NEWTON, name)] == []


def test_the_compatibility_page_lists_every_entry_in_order():
    listed = re.findall(r"^\* \*\*`(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    kinds = (semantics.Semantics, numa.NumaSemantics, pci.PciSemantics)
    entries = [field.name for kind in kinds for field in dataclasses.fields(kind)]

    assert listed == [name for name in entries if name != "pci"]


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
