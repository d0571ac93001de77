"""A request decided twice on a worker's state, of which nothing stays."""

import logging
import uuid
from contextlib import contextmanager

import pytest

from scheduler import errors
from scheduler.introspection.state import host_values
from scheduler.introspection.what_if import what_if
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.rpc.context import RequestContext
from tests.unit.introspection.subjects import a_world
from tests.unit.introspection.test_state import behind_the_back
from tests.world import fleet
from tests.world.fleet import a_spec

TOO_MUCH = 2 * fleet.MEMORY_MB


@contextmanager
def five_hosts(folder):
    """Hosts cmp1 to cmp5, each with a little more memory than the one before."""
    with a_world(folder, hosts=5) as made:
        for number in range(1, 6):
            free = fleet.MEMORY_MB - 10_000 + number
            behind_the_back(made, f"cmp{number}", free_ram_mb=free)
        made.subject.host_manager.refresh_everything()
        yield made


@pytest.fixture
def world(tmp_path):
    with five_hosts(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def kept_world(tmp_path_factory):
    """One for tests which show that they leave it as it was."""
    with five_hosts(tmp_path_factory.mktemp("kept")) as made:
        yield made


def a_request(memory_mb=2048, **fields):
    spec = a_spec(str(uuid.uuid4()), **fields)
    spec.flavor.memory_mb = memory_mb
    return spec


def hosts(told):
    return [each["host"] for each in told["chosen"]]


def everything(world):
    table = world.subject.host_manager.table
    return {key: host_values(table, row) for key, row in table.rows.items()}


#: Changes and the hosts before and after them, of a request for one server.
CASES = {
    "nothing": ({}, ["cmp5"], ["cmp5"]),
    "a multiplier": ({"settings": ["ram_weight_multiplier=-1"]}, ["cmp5"], ["cmp1"]),
    "an old spelling": ({"settings": ["DEFAULT.cpu_allocation_ratio=2"]}, ["cmp5"], ["cmp5"]),
    "a host less": ({"without_hosts": ["cmp5"]}, ["cmp5"], ["cmp4"]),
    "hosts more": ({"add_hosts": [{"like": "cmp1", "count": 3}]}, ["cmp5"], ["cmp1-whatif-1"]),
    "a host replaced": (
        {"add_hosts": [{"like": "cmp5", "count": 2}], "without_hosts": ["cmp5", "cmp5"]},
        ["cmp5"],
        ["cmp5-whatif-1"],
    ),
    "hosts of a profile": (
        {"add_hosts": [{"like": "cmp1", "name": "big", "vcpus": 99, "memory_mb": 4000000}]},
        ["cmp5"],
        ["big-1"],
    ),
    "a filter less": ({"disable": ["RamFilter"]}, ["cmp5"], ["cmp5"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_changes_and_that_nothing_stays(kept_world, name, caplog):
    changes, before, after = CASES[name]
    manager = kept_world.subject.manager
    listened = []
    manager.recorder.listeners.append(listened.append)
    state = everything(kept_world)
    bounds = [(each.minval, each.maxval) for each in manager.driver.settings.policy.weighers]
    with caplog.at_level(logging.INFO, "scheduler.explain"):
        answer = what_if(kept_world.subject, request=a_request(), **changes)
    assert (hosts(answer["before"]), hosts(answer["after"])) == (before, after)
    assert everything(kept_world) == state
    assert (len(manager.recorder.records), listened) == (0, [])
    assert "Placement of" not in caplog.text
    assert bounds == [(w.minval, w.maxval) for w in manager.driver.settings.policy.weighers]
    assert list(kept_world.subject.host_manager.reservations) == []


def test_counts_add_up(world):
    request = a_request(memory_mb=TOO_MUCH)
    answer = what_if(world.subject, request=request, disable=["RamFilter"])
    before, after = answer["before"], answer["after"]
    assert (before["outcome"], after["outcome"]) == ("no_host_fits", "selected")
    for told in (before, after):
        removed = sum(each["start"] - each["end"] for each in told["filters"])
        assert told["considered"] == removed + told["passed"] == 5


def test_several_servers_take_from_each_other(world):
    request = a_request(memory_mb=int(fleet.MEMORY_MB * 0.9))
    request.num_instances = 5
    answer = what_if(world.subject, request=request, without_hosts=["cmp2"])
    assert sorted(hosts(answer["before"])) == [f"cmp{number}" for number in range(1, 6)]
    assert answer["after"]["outcome"] == "no_host_fits"


def test_a_remembered_request_is_decided_as_if_it_were_not_placed(world):
    named = str(uuid.uuid4())
    manager = world.subject.manager
    context = RequestContext(request_id="req-1", overwrite=False)
    manager.select_destinations(context, spec_obj=a_spec(named), instance_uuids=[named])
    state = everything(world)
    for name in ("req-1", named):
        answer = what_if(world.subject, remembered=name, without_hosts=["cmp5"])
        assert hosts(answer["before"]) == ["cmp5"]
        assert hosts(answer["after"]) == ["cmp4"]
        assert answer["notes"] == [
            "1 reservation(s) of these servers are left out of both decisions."
        ]
    assert everything(world) == state
    assert len(manager.recorder.records) == 1


def test_ratios_are_for_hosts_that_leave_them_open(world):
    taken = -int(0.6 * fleet.MEMORY_MB)  # 1.6 of its memory
    for host, ratio in (("cmp3", None), ("cmp4", 1.5)):
        behind_the_back(world, host, ram_allocation_ratio=ratio, free_ram_mb=taken)
    world.subject.host_manager.refresh_everything()
    answer = what_if(world.subject, request=a_request(), settings=["ram_allocation_ratio=3"])
    assert (answer["before"]["passed"], answer["after"]["passed"]) == (3, 4)


def adding(**profile):
    return {"add_hosts": [profile]}


#: Arguments beside a request, and what the error says.
MISTAKES = (
    ({"enable": ["RamFiltr"]}, "--enable RamFiltr: .*did you mean RamFilter"),
    ({"disable": ["IoOpsFilter"]}, "--disable IoOpsFilter: not one of"),
    ({"enable": "RamFilter"}, "enable: not a list of texts"),
    ({"settings": ["ram_wieght_multiplier=1"]}, "--set ram_w.*did you mean ram_w"),
    ({"settings": ["host_subset_size=many"]}, "--set host_subset_size: .*many"),
    ({"settings": ["host_subset_size"]}, "--set host_subset_size: no value"),
    ({"settings": ["weight_classes=no.such.Thing"]}, "--set.*no.such.Thing"),
    ({"settings": ["enabled_filters=NoSuchFilter"]}, "--set.*NoSuchFilter"),
    ({"settings": ["workers=3"]}, "--set workers: no decision reads"),
    ({"without_hosts": ["cnp1"]}, "--without-host cnp1: no host 'cnp1'; did you mean cmp1"),
    ({"add_hosts": {"like": "cmp1"}}, "add_hosts: not a list"),
    ({"add_hosts": ["cmp1"]}, r"--add-hosts \(profile 1\): not a mapping"),
    (adding(like="cmp9"), r"--add-hosts \(profile 1\): no host 'cmp9'; did"),
    (adding(like=["cmp1"]), "like is no text"),
    (adding(vcpu=1), "no key 'vcpu'; did you mean vcpus"),
    (adding(vcpus=1), "like is missing"),
    (adding(like="cmp1", vcpus="x"), "vcpus is 'x'; above 0"),
    (adding(like="cmp1", vcpus=10**30), "vcpus is 1000.*; .* 2147483647 at"),
    (adding(like="cmp1", count=0), "count 0 is not a number from 1"),
    (adding(like="cmp1", aggregates=["x"]), "no aggregate 'x'"),
    (adding(like="cmp1", availability_zone="az-eas"), "mean az-east"),
    ({"request": None, "remembered": "req-9"}, "req-9: not remembered here"),
    ({"remembered": "req-9"}, "request: give it, or what is remembered"),
    ({"max_seconds": 1e-9}, "max_seconds: not decided in time"),
    ({"max_seconds": 0}, "max_seconds: not a number of seconds: 0"),
)


@pytest.mark.parametrize(("arguments", "text"), MISTAKES)
def test_mistakes_name_the_argument_and_leave_nothing(kept_world, arguments, text):
    state = everything(kept_world)
    with pytest.raises(errors.InvalidRequest, match=text):
        what_if(kept_world.subject, **{"request": a_request(), **arguments})
    assert everything(kept_world) == state


def test_added_hosts_have_what_the_host_has_that_they_are_like(world):
    zone = a_request(availability_zone=fleet.ZONE)
    for profile, more in (
        ({"like": "cmp1"}, 2),
        ({"like": "cmp3"}, 0),
        ({"like": "cmp3", "availability_zone": fleet.ZONE}, 2),
    ):
        answer = what_if(world.subject, request=zone, add_hosts=[{**profile, "count": 2}])
        assert answer["after"]["passed"] == answer["before"]["passed"] + more


def test_decisions_go_on_between_the_steps(world, monkeypatch):
    """While it is decided, nobody holds the lock that decisions need."""
    seen = []
    lock = world.subject.host_manager.lock
    place = VirtualFleet.place

    def watched(*given, **named):
        seen.append(bool(getattr(lock, "_is_owned")()))  # noqa: B009 (typeshed does not know it)
        return place(*given, **named)

    monkeypatch.setattr(VirtualFleet, "place", watched)
    what_if(world.subject, request=a_request())
    assert seen == [False, False]


def test_a_driver_without_filters_cannot_be_tried(world):
    manager = world.subject.manager
    manager.driver = object()
    with pytest.raises(errors.InvalidRequest, match="object decides in a way of its own"):
        what_if(world.subject, request=a_request())
