"""Attempts as Havana counted them, and the servers and groups that an old request names."""

import math

import pytest

from conductor_stub import server_rows
from scheduler import errors, objects
from scheduler.builds.direct import (
    DirectBuilds,
    InstanceRows,
    count_attempt,
    hinted_group,
    instance_uuids,
    record_choice,
)
from scheduler.db import tables
from scheduler.drivers import Scheduler


@pytest.mark.parametrize(
    ("hints", "group"),
    [({"group": "web"}, "web"), ({"group": ["web"]}, "web"), ({"group": ""}, None), (None, None)],
)
def test_groups_in_hints(hints, group):
    assert hinted_group({"scheduler_hints": hints}) == group


@pytest.mark.parametrize("spec", [{}, {"instance_uuids": "u"}, {"instance_uuids": [1]}, None, []])
def test_requests_that_name_no_servers(spec):
    with pytest.raises(errors.InvalidRequest, match="request_spec"):
        instance_uuids(spec)


TRIED = [["h1", "n1"]]


@pytest.mark.parametrize(
    ("properties", "most", "retry"),
    [
        ({}, 3, {"num_attempts": 1, "hosts": []}),
        ({"retry": {"num_attempts": 1, "hosts": TRIED}}, 3, {"num_attempts": 2, "hosts": TRIED}),
        ({"retry": {"num_attempts": 1}}, 1, None),
        ({"force_hosts": ["a", "b"]}, 3, None),
        ({"force_nodes": ["a"], "retry": {}}, 3, None),
        ({"force_hosts": []}, 3, {"num_attempts": 1, "hosts": []}),
    ],
)
def test_counting(properties, most, retry):
    count_attempt(properties, ["uuid"], most)
    assert properties.get("retry") == retry


@pytest.mark.parametrize(
    ("retry", "field"),
    [
        ("once", "retry"),
        ({"hosts": "h1"}, "retry"),
        ({"num_attempts": "x"}, "retry.num_attempts"),
        ({"num_attempts": [1]}, "retry.num_attempts"),
        ({"num_attempts": math.inf}, "retry.num_attempts"),
    ],
)
def test_what_cannot_be_counted_on_is_refused(retry, field):
    with pytest.raises(errors.InvalidRequest) as refused:
        count_attempt({"retry": retry}, ["uuid"], 3)
    assert refused.value.kwargs["field"] == f"filter_properties.{field}"


LIMITS = {"limits": {"vcpu": 4.0}}
NOTED = {"retry": {"num_attempts": 1, "hosts": [["h", "n"]]}, **LIMITS}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"retry": {"num_attempts": 1}}, NOTED),
        ({"retry": {"num_attempts": 1, "hosts": None}}, NOTED),
        ({}, LIMITS),
        ({"force_hosts": ["h"]}, {"force_hosts": ["h"]}),
    ],
)
def test_noting(properties, expected):
    record_choice(properties, {"host": "h", "nodename": "n", **LIMITS})
    assert properties == expected


def test_members_and_hosts_of_a_group(database):
    with database.write() as connection:
        for number, host in {1: "h1", 2: "h1", 3: "h2", 4: None, 5: "h3"}.items():
            metadata = {"group": "web" if number != 5 else "db", "image": "web"}
            instance = objects.Instance(uuid=f"u{number}", host=host, system_metadata=metadata)
            server_rows.create_instance(connection, instance)
        server_rows.destroy_instance(connection, "u2")
        left = {"instance_uuid": "u5", "key": "group", "value": "web", "deleted": 1}
        connection.execute(tables.instance_system_metadata.insert().values(left))
    rows = InstanceRows(database, None, "s")

    class Havana(Scheduler):
        builds = DirectBuilds(rows, None, 3)

    assert list(rows.group_members("web")) == ["u1", "u3", "u4"]
    assert Havana().group_hosts(None, "web") == ["h1", "h2"]
    assert Havana().group_hosts(None, "none") == []
