"""Drivers of every generation are called as they were written, and answer as today's do."""

import threading
from typing import Any

import pytest

from scheduler import errors, objects
from scheduler.drivers import Scheduler, loading
from scheduler.drivers.filter_scheduler import configured_policy
from scheduler.drivers.older_forms import OlderHostManager
from scheduler.hosts.host_manager import HostManager
from scheduler.hosts.host_state import HostState
from scheduler.manager import SchedulerManager
from scheduler.rpc.context import RequestContext
from tests.builders import NOW, OWN_UUID, a_conf, a_fleet, a_request

OTHER_UUID = "00000000-0000-4000-a000-000000000002"
UUID = "c0000001-aaaa-4bbb-8ccc-000000000001"
LIMITS = {"memory_mb": 6144.5}


class Fleet:
    """A host manager of the hosts of a table; counts how often it is asked to read."""

    option_of_filters = staticmethod(HostManager.option_of_filters)

    def __init__(self, *hosts):
        self.table = a_fleet(*hosts)
        self.lock = threading.RLock()
        self.refreshed = 0

    def clock(self):
        return NOW

    def refresh(self, arrived_at=None):
        self.refreshed += 1

    def state_of(self, host, node=None):
        for (name, nodename), row in self.table.rows.items():
            if name == host and node in (None, nodename):
                return HostState(self.table, row, None)
        raise errors.ComputeHostNotFound(host=host)


class Todays(Scheduler):
    """Takes whatever comes, as does one that is to run under several releases."""

    answer: Any = [[objects.Selection(service_host="h1")]]

    def select_destinations(self, context, spec_obj, *args, **kwargs):
        self.asked = context, args, kwargs
        return self.answer


class Pikes(Scheduler):
    """HostStates, as the driver of Pike gave."""

    def select_destinations(
        self, context, spec_obj, instance_uuids, alloc_reqs_by_rp_uuid, provider_summaries
    ):
        self.asked = context, spec_obj, instance_uuids
        state = self.host_manager.state_of("h2")
        state.limits = dict(LIMITS)
        return [state for _ in instance_uuids]


class Several(Scheduler):
    """The dicts of Newton for any caller; a parameter more does not make the form another."""

    def select_destinations(self, context, spec_obj, *args, **kwargs):
        chosen = {"host": "h2", "nodename": "n2", "limits": dict(LIMITS)}
        return (chosen for _ in args[0])


class Newtons(Scheduler):
    def select_destinations(self, context, spec_obj):
        self.asked = context, spec_obj, None
        chosen = {"host": "h2", "nodename": "n2", "limits": dict(LIMITS)}
        return [chosen] * spec_obj.num_instances


class Havanas(Scheduler):
    """As Havana's chance driver: no node, no limits."""

    def select_destinations(self, context, request_spec, filter_properties):
        self.asked = context, request_spec, filter_properties
        chosen = {"host": "h2", "nodename": None, "limits": None}
        return [chosen] * request_spec["num_instances"]


class Short(Scheduler):
    def select_destinations(self, context, spec_obj):
        return [{"host": "h2", "nodename": "n2", "limits": {}}]


class Elsewhere(Scheduler):
    def select_destinations(self, context, spec_obj):
        return [objects.Selection(service_host="h9"), [objects.Selection(service_host="h8")]]


class Failing(Scheduler):
    def select_destinations(self, context, spec_obj):
        raise KeyError("rack")


class Unheard(Scheduler):
    def select_destinations(self):
        raise AssertionError("must not be called")


class Bare:
    """Takes nothing from the base class, whose constructor it would not call either."""

    def __init__(self):
        self.seen = self.host_manager

    def select_destinations(self, context, spec_obj):
        return []


def load(cls):
    conf = a_conf(scheduler__driver=f"{__name__}.{cls.__name__}")
    known = {"uuid": UUID, "cell_uuid": UUID}
    return loading.load(conf, Fleet(known, known))


CONTEXT = RequestContext("u", "p", overwrite=False)


def ask(driver, *uuids, **arguments):
    """What the conductor gets for servers of these *uuids*."""
    given = {"spec_obj": a_request(), "return_objects": True, **arguments}
    manager = SchedulerManager(driver.conf, driver)
    return manager.select_destinations(CONTEXT, instance_uuids=list(uuids), **given)


def hosts_of(answer):
    return [(first.service_host, first.nodename) for first, *_others in answer]


@pytest.mark.parametrize("cls", [Several, Newtons, Pikes, Havanas])
def test_drivers_of_any_release_answer_with_selections(cls):
    driver = load(cls)
    answer = ask(driver, OWN_UUID, OTHER_UUID)
    assert hosts_of(answer) == [("h2", "n2"), ("h2", "n2")]
    assert driver.host_manager.refreshed == 1


HOST = {"host": "h1", "nodename": "n1", "limits": {}}


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        pytest.param([HOST], [("h1", "n1")], id="dict"),
        pytest.param([{"host": "h2"}], [("h2", "n2")], id="name of a host only"),
        pytest.param(({"host": "h1"},), [("h1", "n1")], id="tuple"),
        pytest.param([[HOST, {"host": "h2"}]], [("h1", "n1")], id="dicts with alternates"),
        pytest.param([objects.Selection(service_host="h9")], [("h9", None)], id="Selection"),
    ],
)
def test_what_comes_back_is_converted_by_what_it_is(answer, chosen):
    driver = load(Todays)
    driver.answer = answer
    assert hosts_of(ask(driver, OWN_UUID)) == chosen


@pytest.mark.parametrize(
    "answer",
    [None, "h1", {"host": "h1"}, ["h1"], [None], [[]], [{"nodename": "n1"}], [["h1"]], 7],
    ids=repr,
)
def test_an_answer_without_hosts_names_the_driver(answer):
    driver = load(Todays)
    driver.answer = answer
    with pytest.raises(errors.NovaException, match=r"Internal fault .* \(Todays failed\)"):
        ask(driver, OWN_UUID)
    [record] = driver.recorder.records
    assert record.failure.startswith("Todays failed: it answered ")


def test_an_older_driver_that_raises_is_named():
    with pytest.raises(errors.NovaException, match=r"fault .* \(Failing failed: KeyError\)"):
        ask(load(Failing), OWN_UUID)


def test_requests_as_each_release_saw_them():
    newton, pike, havana = map(load, (Newtons, Pikes, Havanas))
    request = a_request(hints={"near": ["h1"]}, ignore_hosts=["h7"])
    for driver in (newton, pike, havana):
        driver.select_destinations(CONTEXT, request, [OWN_UUID, OTHER_UUID], return_alternates=True)
        assert driver.asked[0] is CONTEXT
    assert (newton.asked[1].num_instances, request.num_instances) == (2, 1)
    assert pike.asked[2] == [OWN_UUID, OTHER_UUID]
    _context, request_spec, filter_properties = havana.asked
    assert request_spec["num_instances"] == 2
    assert request_spec["instance_uuids"] == [OWN_UUID, OTHER_UUID]
    assert request_spec["instance_properties"]["memory_mb"] == 512
    assert filter_properties["scheduler_hints"] == {"near": "h1"}
    assert filter_properties["ignore_hosts"] == ["h7"]
    assert filter_properties["instance_type"]["name"] == "m1.tiny"
    havana.select_destinations(CONTEXT, request, None)
    assert "instance_uuids" not in havana.asked[1], "nobody named them"


@pytest.mark.parametrize("cls", [Newtons, Pikes, Havanas])
def test_limits_keep_their_fractions_and_none_stay_none(cls):
    [[selection]] = ask(load(cls), OWN_UUID)
    if cls is Havanas:
        assert selection.limits is None
    else:
        assert (selection.limits.memory_mb, selection.limits_exact) == (6144, LIMITS)


def test_selections_pass_and_fewer_hosts_than_instances_do_not():
    asked = (OWN_UUID, OTHER_UUID)
    assert hosts_of(ask(load(Elsewhere), *asked)) == [("h9", None), ("h8", None)]
    for cls in (Short, Todays):
        with pytest.raises(errors.NoValidHost, match="There are not enough hosts available"):
            ask(load(cls), *asked)


def test_todays_form_is_taken_as_it_is_and_one_that_nobody_knows_is_refused():
    driver = load(Todays)
    assert type(driver) is Todays
    ask(driver, OWN_UUID, return_alternates=True)
    assert driver.asked == (CONTEXT, ([OWN_UUID],), {"return_alternates": True})
    with pytest.raises(errors.ConfigurationError, match=r"\[scheduler\] driver: Unheard\.select"):
        load(Unheard)


def test_constructor_without_arguments_finds_the_host_manager():
    driver = load(Bare)
    assert driver.seen is driver.host_manager
    request = a_request()
    request.num_instances = 0
    assert driver.select_destinations(CONTEXT, request, None) == []


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("select_hosts", (None, {}, {})),
        ("schedule_run_instance", (None, {}, "", [], [], True, {}, False)),
    ],
)
def test_havanas_methods_are_for_drivers_to_write(method, arguments):
    with pytest.raises(NotImplementedError, match=f"implement {method}"):
        getattr(load(Newtons), method)(*arguments)


# --- the steps of a decision, one by one, as a driver of Newton takes them ----------------------


@pytest.fixture
def manager():
    conf = a_conf(
        enabled_filters=["ComputeFilter", "RamFilter"],
        weight_classes=["nova.scheduler.weights.ram.RAMWeigher"],
    )
    own = Fleet({"free_ram_mb": 1024}, {"last_seen": NOW - 61}, {}, {"free_ram_mb": -2000})
    return OlderHostManager(own, configured_policy(conf, own))


def names(states):
    return [state.host for state in states]


def test_all_hosts_filtered_with_limits_and_weighed(manager):
    request, hosts = a_request(), manager.get_all_host_states(CONTEXT)
    assert (names(hosts), manager.refreshed) == (["h1", "h2", "h3", "h4"], 1)
    left = manager.get_filtered_hosts(hosts, request)
    assert names(left) == ["h1", "h3"]
    assert [state.limits for state in left] == [{"memory_mb": 6144.0}] * 2
    weighed = manager.get_weighed_hosts(hosts, request)
    assert names([each.obj for each in weighed])[:2] == ["h2", "h3"]
    assert weighed[0].to_dict() == {"weight": 1.0, "host": "h2"}
    assert manager.get_filtered_hosts([], request) == manager.get_weighed_hosts([], request) == []


def test_what_is_picked_is_taken(manager):
    """Newton's loop: choose, consume, filter what is left."""
    request, hosts, chosen = a_request(), manager.get_all_host_states(CONTEXT), []
    for index in range(20):
        hosts = manager.get_filtered_hosts(hosts, request, index=index)
        if not hosts:
            break
        best = manager.get_weighed_hosts(hosts, request)[0].obj
        best.consume_from_request(request)
        chosen.append(best.host)

    # 1.5 times 4096 MB: h3 has room for 12 and h1, of which 3072 MB are taken, for 6.
    assert (chosen.count("h3"), chosen.count("h1"), len(chosen)) == (12, 6, 18)
