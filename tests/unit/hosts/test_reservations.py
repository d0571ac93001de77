"""Reservations stay subtracted until the host's report includes the instance."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from scheduler import numa
from scheduler.hosts.columns import NEVER
from scheduler.hosts.host_state import Consumption, Fitting, consume
from scheduler.hosts.instances import Terms, TrackedInstance
from scheduler.hosts.reservations import NewtonReservations, Reservation, Reservations
from scheduler.hosts.table import HostTable
from tests.builders import NOW, a_fleet, a_request, an_instance_row
from tests.unit.numa.builders import devices, guest, want
from tests.world import random_fleets

KEY = ("h1", "n1")
EXPIRY_SECONDS = 60
AMOUNT = Consumption(ram_mb=512, disk_mb=1024, vcpus=2)
PINNED = guest(want(range(2), "dedicated")).to_object()
ROWS = st.fixed_dictionaries(
    {
        "free_ram_mb": st.integers(0, 4096),
        "num_io_ops": st.integers(0, 3),
        "bare_metal": st.sampled_from([False, False, False, True]),
        "numa_topology": st.one_of(st.just(random_fleets.TOPOLOGY), random_fleets.topologies),
        "pci_stats": random_fleets.pools,
    }
)
REPORT = {**dict.fromkeys(("vcpus_used", "free_disk_mb", "num_instances"), 0), "vcpus_total": 4}
KEYS = st.sampled_from([KEY, ("h2", "n2")])


@st.composite
def amounts(draw):
    request = a_request(
        flavor={"memory_mb": draw(st.sampled_from([256, 512])), "vcpus": draw(st.integers(0, 2))},
        numa_topology=draw(st.one_of(st.none(), st.just(PINNED), random_fleets.guests())),
        pci_requests=draw(st.one_of(st.none(), random_fleets.devices())),
    )
    semantics = draw(st.sampled_from([numa.CURRENT, numa.NEWTON]))
    return Consumption.from_request(request, {}, Fitting(semantics))


def numbers_and_documents(table):
    names = (*Consumption(0, 0, 0).added, "numa_topology", "pci_stats")
    return {key: [table.value(row, name) for name in names] for key, row in table.rows.items()}


class ReservationMachine(RuleBasedStateMachine):
    """Beside it the reports, and in order the reservations that are not over."""

    made = Bundle("made")

    def __init__(self):
        super().__init__()
        self.table, self.now, self.reports, self.live = HostTable(), NOW, {}, []
        self.reservations = Reservations(self.table, EXPIRY_SECONDS)

    def ended(self, is_over):
        self.live = [each for each in self.live if not is_over(each)]

    def settle(self, *found):
        self.reservations.settle(self.now, found)
        self.ended(lambda each: each.terms.created_at + EXPIRY_SECONDS < self.now)

    @rule(key=KEYS, row=ROWS)
    def report(self, key, row):
        self.now += 1
        self.reports[key] = {**REPORT, **row, "node_id": int(key[0][1]), "updated_at": self.now}
        self.table.put(key, self.reports[key])
        self.reservations.reapply(key)
        self.settle()
        self.ended(lambda each: each.uuid is None and each.key == key)

    @initialize(rows=st.tuples(ROWS, ROWS))
    def begin(self, rows):
        for key, row in zip((KEY, ("h2", "n2")), rows, strict=True):
            self.report(key, row)

    @rule(key=KEYS)
    def lose(self, key):
        if key in self.reports:
            del self.reports[key]
            self.table.remove(key)

    @rule(target=made, key=KEYS, amount=amounts(), uuid=st.sampled_from([None, "u1", "u2", "u3"]))
    def reserve(self, key, amount, uuid):
        if key not in self.reports:
            return None
        rows, names = [self.table.rows[key]], [(uuid, "stand-in")]
        [found] = self.reservations.reserve(rows, names, amount, self.now)
        self.live.append(found)
        return found

    @rule(keys=st.lists(KEYS, max_size=3))
    def reserve_several(self, keys):
        rows = [self.table.rows[key] for key in keys if key in self.reports]
        if not any(self.table.value(row, "bare_metal") for row in rows):
            names = [(None, f"batch-{number}") for number in range(len(rows))]
            self.live += self.reservations.reserve(rows, names, AMOUNT, self.now)

    @rule(reservation=consumes(made))
    def release(self, reservation):
        if reservation in self.live:
            self.live.remove(reservation)
            self.reservations.release(reservation)

    @rule(reservation=made)
    def confirm(self, reservation):
        if reservation in self.live:
            self.reservations.confirm([reservation])
            uuid = reservation.uuid
            self.ended(lambda each: uuid and each.uuid == uuid and each is not reservation)

    @rule(uuid=st.sampled_from(["u1", "u2", "u3"]), is_gone=st.booleans())
    def read_instance(self, uuid, is_gone):
        """It is deleted, or nobody builds it yet."""
        row = an_instance_row(uuid, None, vm_state="building", deleted=int(is_gone))
        self.settle(row)
        if is_gone:
            self.ended(lambda each: each.uuid == uuid)

    @rule(uuid=st.sampled_from(["u1", "u2", "u3"]), key=KEYS)
    def run(self, uuid, key):
        """Its host has built it; it goes when all is done."""
        running = TrackedInstance(uuid, key[0], vm_state="active")
        self.table.put_instance(key[0], uuid, running)
        self.settle(an_instance_row("other", "h1"), an_instance_row(uuid, key[0]))
        self.ended(lambda each: each.uuid == uuid)
        assert self.table.instances[key[0]][uuid] is running
        self.table.drop_instance(uuid)

    @rule(seconds=st.sampled_from([1.0, 59.0, 60.5]))
    def wait(self, seconds):
        self.now += seconds
        self.settle()

    @rule(number=st.integers(0, 3))
    def leave_out(self, number):
        with self.reservations.without(self.live[:number]):
            assert numbers_and_documents(self.table) == self.expected(self.live[number:])

    @rule()
    def go_on_with_a_copy(self):
        before = random_fleets.snapshot(self.table)
        twin = self.reservations.copy(self.table.copy())
        for each in list(twin):
            twin.release(each)
        assert numbers_and_documents(twin.table) == self.expected([])
        assert random_fleets.snapshot(self.table) == before

    def expected(self, live):
        """Reports in a new table, and everything taken again in order."""
        table = HostTable()
        for key, values in self.reports.items():
            row = table.put(key, values)
            for each in live:
                if each.key == key:
                    consume(table, row, each.amount)
        return numbers_and_documents(table)

    @invariant()
    def everything_is_as_if_taken_anew(self):
        assert numbers_and_documents(self.table) == self.expected(self.live)
        assert sorted(map(id, self.reservations)) == sorted(map(id, self.live))
        assert self.reservations.uuids() == {each.uuid for each in self.live} - {None}
        for key in (KEY, ("h2", "n2")):
            assert [*self.reservations.on(key)] == [each for each in self.live if each.key == key]
        shown = {each.placeholder.uuid for each in self.live if each.placeholder}
        assert self.table.host_of_instance.keys() <= shown


TestReservations = ReservationMachine.TestCase
TestReservations.settings = settings(deadline=None, max_examples=60, stateful_step_count=20)


# --- when they are over ---------------------------------------------------------------------------


@pytest.fixture
def table():
    return a_fleet({"updated_at": NOW, "num_instances": 1}, {"reported": False})


def reserve(reservations, uuid="u1", now=NOW + 0.5):
    [made] = reservations.reserve([reservations.table.rows[KEY]], [(uuid, None)], AMOUNT, now)
    return made


def free_ram_mb(reservations):
    return reservations.table.value(0, "free_ram_mb")


@pytest.mark.parametrize(
    ("vm_state", "leaves", "reported_at", "is_over"),
    [
        ("active", "h2", NOW + 2, False),
        ("active", "h2", NOW + 4, True),
        ("building", None, NOW, True),
        (None, None, NOW, True),
    ],
)
def test_a_move_ends_with_a_report_from_after_it(table, vm_state, leaves, reported_at, is_over):
    reservations = Reservations(table)
    table.put_instance("h2", "u1", TrackedInstance("u1", "h2", vm_state=vm_state))
    assert reserve(reservations).terms.source_host == leaves
    table.put(KEY, {"updated_at": reported_at})
    reservations.settle(NOW + 5, [an_instance_row("u1", "h1", NOW + 1)])
    assert (list(reservations) == []) is is_over


def test_one_that_does_not_say_when_it_ends_has_ended(table):
    reservations = Reservations(table)
    reservations.add(Reservation(KEY, AMOUNT, Terms(*KEY, None, None, NOW, NEVER), "u1", None))
    assert free_ram_mb(reservations) == 4096 - 512
    reservations.settle(NOW + 1)
    assert (list(reservations), free_ram_mb(reservations)) == ([], 4096)


# --- as Nova's releases keep them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("updated_at", "accepted"), [(NOW, False), (NOW + 0.5, True), (NOW + 1, True), (NEVER, True)]
)
def test_newton_ignores_reports_older_than_its_last_reservation(table, updated_at, accepted):
    """Where the service was gone it starts afresh, and of bare metal it takes every row."""
    reservations = NewtonReservations(table)
    reservations.confirm([reserve(reservations)])
    reservations.settle(NOW + 1000)
    assert (list(reservations), table.host_of_instance) == ([], {})
    assert free_ram_mb(reservations) == 4096 - 512
    assert reservations.accepts(KEY, updated_at) is accepted
    table.put(KEY, {"bare_metal": True})
    assert reservations.accepts(KEY, NOW)
    table.put(KEY, {"bare_metal": False})
    table.set_service("h1", None, 0.0)
    assert reservations.accepts(KEY, NOW)


def test_newton_leaves_what_a_failed_request_took_until_the_next_row_of_any_age(table):
    reservations = NewtonReservations(table)
    earlier, later = reserve(reservations), reserve(reservations, now=NOW + 20)
    reservations.confirm([earlier])
    reservations.release(later)
    assert free_ram_mb(reservations) == 4096 - 1024
    assert reservations.accepts(KEY, 1.0)
    gone = reserve(reservations)
    table.remove(KEY)
    reservations.release(gone)
    assert list(reservations) == []


def test_newton_believes_an_older_row_after_one_that_got_no_devices():
    table = a_fleet({"pci_stats": "[]", "updated_at": NOW - 9})
    request = a_request(pci_requests=devices(1))
    for amount, updated_at in (
        (Consumption.from_request(request, {}, Fitting(numa.NEWTON)), NOW - 9),
        (AMOUNT, NOW),
    ):
        NewtonReservations(table).reserve([0], [("u1", None)], amount, NOW)
        assert table.value(0, "updated_at") == updated_at


@pytest.mark.parametrize(
    ("kind", "mask"), [(Reservations, [True, False]), (NewtonReservations, [True, True])]
)
def test_rows_never_filled_in_are_claimable_in_newton_only(table, kind, mask):
    assert kind(table).claimable(np.array([0, 1])).tolist() == mask
    assert kind(table).accepts(("h9", "n9"), 0.0)
