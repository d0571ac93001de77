"""(configured cap, oldest compute) -> the version that is sent."""

from __future__ import annotations

import pytest

from conductor_stub import compute_versions
from scheduler import errors


@pytest.mark.parametrize(
    ("configured", "build", "terminate"),
    [
        (None, (6, 0), (6, 0)),
        ("6.0", (6, 0), (6, 0)),
        ("wallaby", (6, 0), (6, 0)),
        ("hibiscus", (6, 0), (6, 0)),
        ("Ussuri", (5, 11), (5, 0)),
        ("victoria", (5, 11), (5, 0)),
        ("5.10", (5, 0), (5, 0)),
        ("queens", (5, 0), (5, 0)),
        ("4.21", (4, 19), (4, 0)),
        ("pike", (4, 0), (4, 0)),
        ("newton", (4, 0), (4, 0)),
        ("4.0", (4, 0), (4, 0)),
    ],
)
def test_the_newest_version_below_the_cap_is_sent(configured, build, terminate):
    cap = compute_versions.parse_cap(configured)

    assert compute_versions.newest(compute_versions.BUILD_VERSIONS, cap) == build
    assert compute_versions.newest(compute_versions.TERMINATE_VERSIONS, cap) == terminate


@pytest.mark.parametrize(
    ("configured", "build"),
    [
        ("icehouse", (3, 23)),
        ("3.34", (3, 33)),
        ("juno", (3, 33)),
        ("3.39", (3, 36)),
        ("3.40", (3, 40)),
    ],
)
def test_hosts_from_before_kilo_are_told_to_build_and_to_delete(configured, build):
    cap = compute_versions.parse_cap(configured)

    assert compute_versions.newest(compute_versions.BUILD_VERSIONS, cap) == build
    assert compute_versions.newest(compute_versions.TERMINATE_VERSIONS, cap) == (3, 22)
    with pytest.raises(errors.ConfigurationError, match="nothing can be sent"):
        compute_versions.newest(compute_versions.PREP_RESIZE_VERSIONS, cap)


@pytest.mark.parametrize(
    ("versions", "configured", "sent"),
    [
        (compute_versions.PREP_RESIZE_VERSIONS, None, (6, 0)),
        (compute_versions.PREP_RESIZE_VERSIONS, "train", (5, 1)),
        (compute_versions.PREP_RESIZE_VERSIONS, "queens", (5, 0)),
        (compute_versions.PREP_RESIZE_VERSIONS, "4.22", (4, 21)),
        (compute_versions.PREP_RESIZE_VERSIONS, "4.18", (4, 18)),
        (compute_versions.PREP_RESIZE_VERSIONS, "pike", (4, 1)),
        (compute_versions.PREP_RESIZE_VERSIONS, "kilo", (4, 0)),
        (compute_versions.UNSHELVE_VERSIONS, "5.13", (5, 13)),
        (compute_versions.UNSHELVE_VERSIONS, "newton", (4, 0)),
        (compute_versions.REBUILD_VERSIONS, "victoria", (5, 12)),
        (compute_versions.REBUILD_VERSIONS, "newton", (4, 5)),
    ],
)
def test_every_method_has_versions_of_its_own(versions, configured, sent):
    assert compute_versions.newest(versions, compute_versions.parse_cap(configured)) == sent


@pytest.mark.parametrize("configured", ["havana", "3.22", "4", "6.x", "nonsense", "4.0.1"])
def test_a_cap_that_is_no_use_is_refused_by_name(configured):
    with pytest.raises(
        errors.ConfigurationError, match=r"\[upgrade_levels\] compute.*" + configured
    ):
        compute_versions.parse_cap(configured)


def test_a_cap_of_a_major_version_to_come_is_refused():
    with pytest.raises(errors.ConfigurationError, match=r"\[upgrade_levels\] compute"):
        compute_versions.newest(compute_versions.BUILD_VERSIONS, (7, 0))


@pytest.mark.parametrize(
    ("service_version", "cap"),
    [
        (None, None),
        (74, (6, 0)),
        (56, (6, 0)),
        (55, (5, 0)),
        (30, (5, 0)),
        (22, (4, 17)),
        (15, (4, 13)),
        (9, (4, 11)),
        (2, (4, 5)),
    ],
)
def test_the_oldest_compute_service_sets_the_automatic_cap(service_version, cap):
    assert compute_versions.cap_for_service_version(service_version) == cap
