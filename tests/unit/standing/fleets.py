"""Fleets on which later servers of a request once went elsewhere than one by one."""

from __future__ import annotations


def sized(*several):
    names = ("free_ram_mb", "free_disk_mb", "num_io_ops", "vcpus_used", "failed_builds")
    return [dict(zip(names, each, strict=True)) for each in several]


#: Two that are equal, of which only one is kept apart, and the other was picked last.
EQUALS = sized(
    (13_312, 35_840, 1, 0, 1),
    (13_312, 35_840, 1, 0, 1),
    (2_048, 62_464, 3, 0, 1),
    (3_072, 51_200, 1, 0, 1),
)
#: The first host is full while others that are kept apart behind it are still picked.
FULL_FIRST = sized(
    (1_024, 32_768, 0, 2, 0),
    (5_120, 34_816, 2, 0, 0),
    (3_072, 23_552, 2, 2, 0),
    (11_264, 48_128, 0, 3, 0),
    (14_336, 81_920, 2, 3, 0),
    (15_360, 62_464, 0, 1, 0),
    (14_336, 13_312, 2, 2, 1),
    (12_288, 13_312, 6, 1, 0),
)
