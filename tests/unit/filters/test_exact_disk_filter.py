"""(host's free disk, disk asked for) -> exactly that or not, and the limit."""

from __future__ import annotations

import pytest

from scheduler.filters.exact_disk_filter import ExactDiskFilter
from tests.builders import a_conf, a_host, a_request, verdict

DIFFERENT = ["exact_disk.different"]


@pytest.mark.parametrize(
    ("free_disk_mb", "flavor", "reasons"),
    [
        pytest.param(102400, {"root_gb": 100}, [], id="root"),
        pytest.param(102400, {"root_gb": 50, "ephemeral_gb": 50}, [], id="root and ephemeral"),
        pytest.param(102400, {"root_gb": 99, "swap": 1024}, [], id="root and swap"),
        pytest.param(102400, {"root_gb": 99}, DIFFERENT, id="less"),
        pytest.param(102400, {"root_gb": 100, "swap": 1}, DIFFERENT, id="more"),
        pytest.param(0, {"root_gb": 0}, [], id="nothing"),
    ],
)
def test_disk_decides(free_disk_mb, flavor, reasons):
    host = a_host(free_disk_mb=free_disk_mb)

    assert verdict(ExactDiskFilter(a_conf()), host, a_request(flavor=flavor)) == reasons


def test_the_limit_is_what_the_host_has():
    limits = ExactDiskFilter(a_conf()).limits(a_host(free_disk_mb=512), a_request())

    assert limits == {"disk_gb": 100}
    assert type(limits["disk_gb"]) is int
