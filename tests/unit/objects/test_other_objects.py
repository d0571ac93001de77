"""Networks, block devices, instances, aggregates and the plain form of everything."""

from __future__ import annotations

import datetime

import pytest

from scheduler import errors, objects

SIX = ("net", "192.0.2.1", "port", "pci", "arq", "profile")


@pytest.mark.parametrize("length", [2, 4, 6])
def test_network_tuples(length):
    networks = objects.NetworkRequestList.from_tuples([SIX[:length]])
    assert networks.as_tuples(length) == [SIX[:length]]
    assert networks.as_tuples() == [SIX[:length] + (None,) * (6 - length)]
    assert networks[0].is_set("device_profile") == (length == 6)


@pytest.mark.parametrize("values", [(), ("net",), SIX[:3], (*SIX, "more")])
def test_network_tuples_of_no_known_length(values):
    with pytest.raises(errors.InvalidRequest, match="tuple"):
        objects.NetworkRequestList.from_tuples([values])


def test_instance_needs_only_a_uuid():
    instance = objects.Instance(uuid="u")
    assert (instance.name, instance.system_metadata, instance.host) == (None, {}, None)
    assert instance.locked is False
    instance.id = 255
    assert instance.name == "instance-000000ff"


@pytest.mark.parametrize(
    ("metadata", "zone"),
    [(None, None), ({}, None), ({"availability_zone": "z"}, "z"), ({"ssd": "true"}, None)],
)
def test_zone_of_an_aggregate(metadata, zone):
    aggregate = objects.Aggregate(name="a", metadata=metadata)
    assert aggregate.availability_zone == zone
    assert objects.to_plain(aggregate) == {
        "name": "a",
        "metadata": metadata,
        "availability_zone": zone,
    }


def test_plain_form():
    moment = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    instance = objects.Instance(
        id=1,
        uuid="u",
        access_ip_v4="192.0.2.1",
        launched_at=moment,
        security_groups=objects.SecurityGroupList(objects=[objects.SecurityGroup(name="sg")]),
        numa_topology=objects.InstanceNUMATopology(
            cells=[objects.InstanceNUMACell(id=0, cpuset={2, 1}, pcpuset=frozenset())]
        ),
    )
    plain = objects.to_plain({"instances": (instance,)})
    assert plain == {
        "instances": [
            {
                "id": 1,
                "uuid": "u",
                "access_ip_v4": "192.0.2.1",
                "launched_at": moment,
                "security_groups": [{"name": "sg"}],
                "numa_topology": {
                    "cells": [
                        {
                            "id": 0,
                            "cpuset": [1, 2],
                            "pcpuset": [],
                            "cpuset_reserved": None,
                            "pagesize": None,
                            "cpu_pinning_raw": None,
                            "cpu_policy": None,
                            "cpu_thread_policy": None,
                        }
                    ]
                },
                "name": "instance-00000001",
            }
        ]
    }
