"""Packing pinned CPUs (reference page numa_pci, section 5.3 and its examples)."""

from __future__ import annotations

import pytest

from scheduler.numa import CURRENT, NEWTON
from scheduler.numa.pairing import complete_cores, listed_cores, pack
from tests.unit.numa.builders import cell, want

PAIRS = [[0, 4], [1, 5], [2, 6], [3, 7]]
QUADS = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("siblings", "pinned", "threads", "wanted", "cpus", "per_core"),
    [
        (PAIRS, [0, 4], None, 4, (1, 5, 2, 6), 2),
        (PAIRS, [], "prefer", 3, (0, 4, 1), 1),
        (PAIRS, [4, 5, 6], None, 3, (0, 1, 2), 1),
        (PAIRS, [0, 4, 5], None, 5, (1, 2, 6, 3, 7), 1),
        (PAIRS, [4, 5, 6], "require", 3, None, None),
        (PAIRS, [4], "require", 2, (1, 5), 2),
        (PAIRS, [4], "isolate", 2, (1, 2), 1),
        (PAIRS, [4], "isolate", 4, None, None),
        (PAIRS, [0, 1, 2, 3], "isolate", 1, None, None),
        (QUADS, [], "prefer", 6, (0, 1, 2, 3, 4, 5), 2),
        (QUADS, [0], "prefer", 7, (1, 2, 3, 4, 5, 6, 7), 1),
        (QUADS, [0], "require", 4, (4, 5, 6, 7), 4),
        ([], [0], None, 2, (1, 2), 1),
        ([], [], "require", 1, None, None),
        ([], [], "isolate", 2, (0, 1), 1),
    ],
)
def test_pack(siblings, pinned, threads, wanted, cpus, per_core):
    host = cell(cpus=range(8), siblings=siblings, pinned=pinned)
    guest = want(range(wanted), "dedicated", thread_policy=threads)
    for cores in (listed_cores, complete_cores):
        found = pack(host, guest, 0, cores, may_fall_short=False)
        assert (found and found.cpus) == cpus
        assert (found and found.threads) == per_core


@pytest.mark.parametrize(
    ("threads", "wanted", "pinned", "reserved"),
    [
        (None, 3, [], {5}),
        ("isolate", 2, [], {2}),
        ("isolate", 4, [], None),
        (None, 8, [], None),
        ("require", 2, [2, 6, 3, 7], {1}),
        (None, 2, [1, 5, 2, 6, 3], {7}),
    ],
)
def test_the_emulators_own_cpu(threads, wanted, pinned, reserved):
    host = cell(cpus=range(8), siblings=PAIRS, pinned=pinned)
    guest = want(range(wanted), "dedicated", thread_policy=threads)
    found = pack(host, guest, 1, complete_cores, may_fall_short=False)
    assert (found and set(found.reserved)) == reserved


@pytest.mark.parametrize(
    ("semantics", "cpus"), [(NEWTON, (0, 1)), (CURRENT, (0, 2, 3))], ids=["newton", "current"]
)
def test_cpus_that_no_sibling_set_lists(semantics, cpus):
    host = cell(cpus=range(4), siblings=[[0, 1]])
    guest = want(range(3), "dedicated")
    found = pack(host, guest, 0, semantics.cores, semantics.may_pin_too_few)
    assert found is not None
    assert found.cpus == cpus


def test_no_sibling_set_with_a_free_cpu():
    host = cell(cpus=range(4), siblings=[[0, 1]], pinned=[0, 1])
    assert pack(host, want([0], "dedicated"), 0, listed_cores, may_fall_short=True) is None
