"""(host's free memory, memory asked for) -> exactly that or not, and the limit."""

from __future__ import annotations

import pytest

from scheduler.filters.exact_ram_filter import ExactRamFilter
from tests.builders import a_conf, a_host, a_request, verdict

DIFFERENT = ["exact_ram.different"]


@pytest.mark.parametrize(
    ("free_ram_mb", "memory_mb", "reasons"),
    [
        (4096, 4096, []),
        (4096, 4095, DIFFERENT),
        (4096, 4097, DIFFERENT),
        (512, 512, []),
        (0, 0, []),
    ],
)
def test_memory_decides(free_ram_mb, memory_mb, reasons):
    host, request = a_host(free_ram_mb=free_ram_mb), a_request(flavor={"memory_mb": memory_mb})

    assert verdict(ExactRamFilter(a_conf()), host, request) == reasons


def test_the_limit_is_what_the_host_has():
    limits = ExactRamFilter(a_conf()).limits(a_host(free_ram_mb=512), a_request())

    assert limits == {"memory_mb": 4096}
    assert type(limits["memory_mb"]) is int
