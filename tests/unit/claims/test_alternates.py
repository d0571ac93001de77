"""The conductor claims an alternate in place of the host that failed; claims make way."""

import pytest

from conductor_stub.alternates import AlternateClaims
from scheduler.claims import recovery
from scheduler.claims.backend import Booked, Lost
from tests.builders import a_conf, a_request
from tests.unit.claims.fleets import GB, Context, a_name
from tests.unit.claims.test_going_back import copied, put_back

CONTEXT = Context("req-conductor".ljust(255, "-"))


@pytest.fixture
def alternates(fleet):
    conf = a_conf(enabled_filters=["RamFilter"], DEFAULT__ram_allocation_ratio=1.0)
    return AlternateClaims(conf, fleet.database, fleet.clock)


def a_spec(ram_mb):
    return a_request(flavor={"memory_mb": ram_mb, "root_gb": 0})


def test_an_alternate_takes_the_place_of_the_host_that_failed(fleet, worker, alternates):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    ((first, second, _third),) = one.select("req-1", 3 * GB, name, return_alternates=True)
    for _delivery in range(2):
        assert alternates.claim(CONTEXT, a_spec(3 * GB), name, second)
        assert fleet.claims() == {name: second.service_host}
    one.manager.refresh()
    assert one.free_mb()[first.service_host] == 4 * GB
    assert one.free_mb()[second.service_host] == GB


@pytest.mark.parametrize("how", ["claimed", "reported"])
def test_an_alternate_that_is_full_by_now_is_not_booked(fleet, worker, alternates, how):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    ((first, second, third),) = one.select("req-1", 3 * GB, name, return_alternates=True)
    other = a_name()
    fleet.wait_for_host(other, 3 * GB)
    assert one.hosts("req-2", 3 * GB, other) == [second.service_host]
    if how == "reported":
        fleet.arrive(other, second.service_host)
    assert not alternates.claim(CONTEXT, a_spec(3 * GB), name, second)
    assert fleet.claims()[name] == first.service_host
    assert alternates.claim(CONTEXT, a_spec(3 * GB), name, third)
    fleet.check()


def test_a_scheduler_with_an_older_view_sees_the_alternate(fleet, worker, alternates):
    one = worker()
    name = a_name()
    fleet.wait_for_host(name, 3 * GB)
    ((_first, second, _third),) = one.select("req-1", 3 * GB, name, return_alternates=True)
    pending = one.decide("req-2", 3 * GB, a_name())
    assert pending.hosts == [second.service_host]
    assert alternates.claim(CONTEXT, a_spec(3 * GB), name, second)
    assert pending.book() == Lost(needs_read=False)


def test_what_is_released_is_free_at_once(fleet, worker, alternates):
    one = worker()
    name = a_name()
    (host,) = one.hosts("req-1", 3 * GB, name)
    alternates.release(CONTEXT, name)
    assert fleet.claims() == {}
    one.manager.refresh()
    assert one.free_mb()[host] == 4 * GB


def test_a_host_that_is_gone_is_not_booked(fleet, worker, alternates):
    one = worker()
    ((_first, second, _third),) = one.select("req-1", GB, a_name(), return_alternates=True)
    second.service_host = "elsewhere"
    assert not alternates.claim(CONTEXT, a_spec(GB), a_name(), second)


def test_what_makes_way_counts_until_the_report_of_its_host_is_read(fleet, worker):
    """Its instance may have arrived there unseen; so it has, here."""
    one, name = worker(), a_name()
    fleet.wait_for_host(name, GB)
    (first,) = one.hosts("req-1", GB, name)
    late = one.decide("req-2", 4 * GB, name, ignore_hosts=[first])
    fleet.arrive(name, first)
    assert late.book() == Booked(late.decided.selections)
    assert one.free_mb()[first] == 3 * GB
    one.manager.refresh()
    assert one.free_mb()[first] == 3 * GB


def test_no_alternate_is_booked_while_lost_claims_are_written_again(
    fleet, worker, clock, alternates, monkeypatch
):
    one, name, other, earlier = worker(), a_name(), a_name(), copied(fleet.database)
    ((_first, second, _third),) = one.select("req-1", 3 * GB, name, return_alternates=True)
    for each in (name, other):
        fleet.wait_for_host(each, 3 * GB)
    assert one.hosts("req-2", 3 * GB, other) == [second.service_host]
    put_back(fleet.database, earlier)
    one.manager.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "_written", lambda *_arguments: 1 / 0)
        one.manager.refresh()  # it has written the mark, and no more
    waited = []

    def write_again(seconds):
        waited.append(seconds)
        clock.pass_by(seconds)
        one.manager.refresh()

    alternates.pause = write_again
    assert not alternates.claim(CONTEXT, a_spec(3 * GB), name, second)
    assert waited
    fleet.check()
