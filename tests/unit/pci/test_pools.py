"""Pools of a host: mistakes, tags, writing them back; worked examples show how they are read."""

import json

import pytest

from scheduler import errors
from scheduler.pci import Pools

PLAIN = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0, "count": 2}


def text(*pools):
    return json.dumps(pools)


@pytest.mark.parametrize("key", ["vendor_id", "product_id", "count"])
def test_a_mandatory_key_is_missing(key):
    broken = {name: value for name, value in PLAIN.items() if name != key}
    with pytest.raises(errors.InvalidRequest, match=key):
        Pools.from_text(text(broken))


def test_tags_become_text():
    (pool,) = Pools.from_text(text({**PLAIN, "a": True, "b": 10, "c": None})).to_dicts()
    assert pool == {**PLAIN, "a": "True", "b": "10", "c": None}


def test_devices_on_a_cell():
    pools = Pools.from_text(text(PLAIN, {**PLAIN, "count": 3}, {**PLAIN, "numa_node": None}))
    assert [pools.devices_on(node) for node in (0, 1)] == [5, 0]
