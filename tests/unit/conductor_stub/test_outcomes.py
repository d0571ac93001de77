"""Whatever is asked of the conductor, and whatever is lost meanwhile: who is told, and of what."""

import uuid
from typing import NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conductor_stub import server_rows
from scheduler import errors
from scheduler.db import instances
from tests.builders import examples
from tests.unit.conductor_stub import builders
from tests.unit.conductor_stub.conftest import Conductor
from tests.unit.conductor_stub.driving import build, fault, start, tried, wanted_of

NO_VALID_HOST = errors.NoValidHost(reason="There are not enough hosts available.")
NAMES = "abcu"  # u cannot be reached
HOSTS = st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
#: How the builds are asked for: as Newton's API does, as a compute that failed, as today's API.
NEWTON, AGAIN, TODAY = "build", "build elsewhere", "schedule and build"


class Wanted(NamedTuple):
    """One server, what becomes of it meanwhile, and the hosts that are named for it."""

    fate: str
    hosts: list[str]


class Outcome(NamedTuple):
    """The host told and the alternates that it knows, or the reason why there is none."""

    host: str | None = None
    rest: list[str] | None = None
    error: str | None = None
    is_released: bool = False


WANTED = st.builds(Wanted, st.sampled_from(["there", "there", "gone", "cancelled"]), HOSTS)


def end_of(wanted, way, bookable, attempt):
    """The outcome for one server of a batch that has hosts."""
    hosts = [host for host in wanted.hosts if way != AGAIN or host in bookable]
    gone = wanted.fate == "gone" if way != TODAY else wanted.fate != "there"
    if not hosts:
        reason = "Exhausted all hosts" if way == AGAIN else "The scheduler named no host"
        return Outcome(error=None if gone else reason, is_released=way == TODAY and gone)
    if gone or (wanted.fate == "cancelled" and attempt <= 1):
        return Outcome(is_released=way == TODAY or not gone)
    if hosts[0] == "u":
        return Outcome(error="no way to u")
    return Outcome(hosts[0], wanted.hosts[wanted.hosts.index(hosts[0]) + 1 :])


def asked_for(database, servers, way):
    """The rows as they are when the conductor gets to them; the instances."""
    made = []
    with database.write() as conn:
        for each in servers:
            instance = builders.instance(uuid=str(uuid.uuid4()))
            made.append(instance)
            if each.fate == "gone" and way != TODAY:
                continue
            server_rows.create_build_request(conn, instance)
            if way != TODAY:
                server_rows.create_instance(conn, instance)
            if each.fate != "there":
                server_rows.delete_build_request(conn, instance.uuid)
    return made


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(
    way=NEWTON,
    servers=[Wanted("there", [])],
    bookable=set(),
    attempts=1,
    most=2,
    is_forced=False,
    has_hosts=False,
)
@given(
    way=st.sampled_from([NEWTON, AGAIN, TODAY]),
    servers=st.lists(WANTED, min_size=1, max_size=3),
    bookable=st.sets(st.sampled_from(NAMES)),
    attempts=st.integers(0, 3),
    most=st.integers(1, 3),
    is_forced=st.booleans(),
    has_hosts=st.sampled_from([True, True, True, False]),
)
def test_each_server_has_its_own_end(
    database, way, servers, bookable, attempts, most, is_forced, has_hosts
):
    conductor = Conductor(database, options={"scheduler__max_attempts": most})
    conductor.compute.unreachable = {"u"}
    lists = [[builders.selection(host) for host in each.hosts] for each in servers]
    # An answer has a list too few now and then, or one too many.
    answer = [*lists, [builders.selection("a")]] if lists[-1] else lists[:-1]
    conductor.scheduler.answer = answer if has_hosts else NO_VALID_HOST
    made = asked_for(database, servers, way)
    attempts, is_forced = (0, False) if way == TODAY else (attempts, is_forced)
    counts = most > 1 and not is_forced
    attempt = attempts + 1 if counts else max(attempts, 1)

    if way == TODAY:
        start(conductor, [wanted_of(each) for each in made])
    else:
        properties = tried(attempts) if attempts else {}
        given_lists = {"host_lists": lists} if way == AGAIN else {}
        conductor.claims.bookable = bookable
        build(conductor, made, {**properties, "force_hosts": ["a"] * is_forced}, **given_lists)

    is_over = counts and attempt > most
    if is_over:
        ends, attempt = ["Exceeded max scheduling attempts"] * len(made), attempts
    elif way != AGAIN and not has_hosts:
        ends = ["not enough hosts"] * len(made)
    else:
        ends = [end_of(each, way, bookable, attempt) for each in servers]
    assert len(conductor.scheduler.asked) == (way != AGAIN and not is_over)
    outcomes = []
    for each, end in zip(servers, ends, strict=True):
        is_lost = each.fate == "gone" or (way == TODAY and each.fate == "cancelled")
        plain = Outcome(error=None if is_lost else end) if isinstance(end, str) else end
        outcomes.append(plain)
    check(conductor, way, list(zip(servers, made, outcomes, strict=True)), attempt, counts)


def check(conductor, way, ends, attempt, counts):
    casts = [(host, cast.instance.uuid) for host, cast in conductor.compute.casts]
    assert casts == [(end.host, made.uuid) for _, made, end in ends if end.host]
    for (_, cast), end in zip(
        conductor.compute.casts, [end for *_, end in ends if end.host], strict=True
    ):
        assert [each.service_host for each in cast.host_list] == end.rest
        retry = cast.filter_properties.get("retry")
        assert not counts or retry["num_attempts"] == attempt
        assert not retry or retry["hosts"][-1] == [end.host, end.host]
    told = {each.instance_id: each.reason for each in conductor.told.errors}
    failed = {made.uuid: end.error for _, made, end in ends if end.error}
    assert (told.keys(), len(conductor.told.errors)) == (failed.keys(), len(failed))
    assert all(failed[uuid] in told[uuid] for uuid in told)
    released = {(True, made.uuid) for _, made, end in ends if end.is_released}
    assert set(conductor.claims.released) == released
    for server, made, end in ends:
        with conductor.database.read() as conn:
            rows = instances.list_all(conn, uuids=[made.uuid])
            assert server_rows.list_build_requests(conn, [made.uuid]) == [] or attempt > 1
        if end.error or end.host:
            [row] = rows
            assert row.vm_state == ("error" if end.error else "building")
            assert row.system_metadata["nova_scheduler_attempts"] == str(attempt)
            assert not end.error or end.error in fault(conductor, made).message
        else:
            assert (rows == []) is (server.fate == "gone" or way == TODAY)
