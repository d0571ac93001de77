"""Two hosts beside a naive model: after every order their rows are as the model says."""

import dataclasses
import itertools
import json
import shutil

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from conductor_stub import server_rows
from conductor_stub.compute import registration
from scheduler import objects
from scheduler.db import compute_nodes, instances
from scheduler.db.database import Database
from tests.builders import examples
from tests.unit.conductor_stub.compute.fleets import HOSTS, Fleet, an_instance, flavor
from tests.unit.db.builders import delete_host

RESERVED_MB = 512
SHELVED = "shelved_offloaded"
FATES = {
    "runs": {},
    "fails": {"fail_rate": 1.0},
    "aborts": {"abort_rate": 1.0},
    "is cut off": {"build_seconds": 1.0},
}
CAUSES = {"fails": "failed to spawn", "aborts": "has no more networks"}
NUMBERS = st.integers(0, 4)
ON, ANY = st.sampled_from(HOSTS), st.booleans()
#: The most that may be used on a host with its newcomer, and its own 512 MB.
LIMITS = st.sampled_from([None, 1024, 1536, 2048])


@dataclasses.dataclass
class Guest:
    uuid: str
    vm_state: str = "building"
    task_state: str | None = "scheduling"
    host: str | None = None
    sizes: tuple[int, int, int] = (1, 512, 10)
    fault: str | None = None

    @property
    def waits(self):
        is_free = self.host is None and self.task_state in ("scheduling", None)
        return is_free and self.vm_state == "building"


def cut_off(seconds):
    raise SystemExit


class Lives(RuleBasedStateMachine):
    """Five instances at most, some of which are gone: orders for those do nothing."""

    def __init__(self, database):
        super().__init__()
        self.fleet = Fleet(database)
        self.told = self.fleet.ends
        self.hosts = {name: self.fleet.make(cut_off, **changes) for name, changes in FATES.items()}
        self.guests, self.gone = {}, {}
        self.failures = dict.fromkeys(HOSTS, 0)

    def teardown(self):
        self.fleet.database.dispose()

    def instance(self, number):
        """The instance of that number, made at first, and its guest unless it is gone."""
        if number not in self.guests and number not in self.gone:
            self.guests[number] = Guest(an_instance(self.fleet.database).uuid)
        guest = self.guests.get(number)
        self.told.news.clear()
        return objects.Instance(uuid=guest.uuid if guest else self.gone[number]), guest

    def fits(self, guest, host, limit, memory_mb):
        others = [each for each in self.guests.values() if each is not guest]
        used = sum(each.sizes[1] for each in others if each.host == host) + RESERVED_MB
        return limit is None or used + memory_mb <= limit

    def write(self, guest, **changes):
        """Change the row of *guest* as a conductor or an API does."""
        vars(guest).update(changes)
        with self.fleet.database.write() as conn:
            instances.update(conn, guest.uuid, **changes)

    def expect(self, *news):
        assert self.told.news == list(news)

    def ends_badly(self, guest, fault):
        """A build of *guest* that no other host is to try."""
        guest.vm_state, guest.task_state, guest.host, guest.fault = "error", None, None, fault

    @rule(number=NUMBERS, host=ON, limit=LIMITS, fate=st.sampled_from([*FATES]), retry=ANY)
    def build(self, number, host, limit, fate, retry):
        instance, guest = self.instance(number)
        is_taken = guest is not None and guest.waits
        is_refused = is_taken and not self.fits(guest, host, limit, guest.sizes[1])
        properties = {} if retry else {"filter_properties": {"retry": None}}
        arguments = {"host": host, "limits": {"memory_mb": limit}, **properties}
        try:
            self.fleet.order(self.hosts[fate], instance, **arguments)
        except SystemExit:
            assert is_taken
            guest.task_state, guest.host = "spawning", host
        else:
            cause = "MB of memory requested" if is_refused else CAUSES.get(fate)
            if not is_taken:
                self.expect()
            elif cause is None:
                guest.vm_state, guest.task_state, guest.host = "active", None, host
                self.failures[host] = 0
                self.expect(("update", host, [guest.uuid]))
            else:
                self.failures[host] += 1
                if retry and cause != CAUSES["aborts"]:
                    guest.task_state = "scheduling"
                    order = self.told.orders.pop(guest.uuid)
                    assert cause in order["filter_properties"]["retry"]["exc_reason"]
                else:
                    self.ends_badly(guest, cause)
                self.expect()
        assert self.told.orders == {}

    @rule()
    def restart(self):
        self.told.news.clear()
        self.fleet.make().register()
        self.expect()
        self.failures = dict.fromkeys(HOSTS, 0)
        for guest in self.guests.values():
            if guest.task_state == "spawning":
                self.failures[guest.host] += 1
                self.ends_badly(guest, f"{guest.host} ended during the build")

    @rule(number=NUMBERS, host=ON)
    def terminate(self, number, host):
        instance, guest = self.instance(number)
        self.fleet.order(self.hosts["runs"], instance, "terminate_instance", host, bdms=None)
        self.expect(("delete", guest and guest.host or host, instance.uuid))
        if guest is not None:
            self.gone[number] = self.guests.pop(number).uuid

    @rule(
        number=NUMBERS,
        host=ON,
        limit=LIMITS,
        memory_mb=st.sampled_from([512, 1024]),
        retry=ANY,
        is_asked=ANY,
    )
    def resize(self, number, host, limit, memory_mb, retry, is_asked):
        instance, guest = self.instance(number)
        if guest is not None and is_asked and guest.vm_state == "active":
            self.write(guest, task_state="resize_prep")
        properties = {"retry": {"num_attempts": 1, "hosts": []}} if retry else {}
        self.fleet.order(
            self.hosts["runs"],
            instance,
            "prep_resize",
            host,
            request_spec=objects.RequestSpec(instance_uuid=instance.uuid),
            filter_properties={**properties, "limits": {"memory_mb": limit}},
            flavor=flavor(id=7, memory_mb=memory_mb, vcpus=2, root_gb=20),
            host_list=[],
        )
        news = []
        if guest is not None and guest.task_state == "resize_prep":
            if self.fits(guest, host, limit, memory_mb):
                news = [("update", host, [guest.uuid])]
                if guest.host != host:
                    news.append(("delete", guest.host, guest.uuid))
                guest.host, guest.task_state, guest.sizes = host, None, (2, memory_mb, 20)
            elif retry:
                again = self.told.moves.pop(guest.uuid)["scheduler_hint"]["filter_properties"]
                assert "MB of memory" in again["retry"]["exc_reason"]
            else:
                guest.task_state, guest.fault = None, "MB of memory"
            if not news:  # the host it stays on counts the work in hand at its next report
                self.hosts["runs"].audit()
        assert self.told.moves == {}
        self.expect(*news)

    @rule(number=NUMBERS, host=ON, limit=LIMITS, is_asked=ANY)
    def come_from_elsewhere(self, number, host, limit, is_asked):
        """Unshelve an instance without a host, rebuild one whose host is down."""
        instance, guest = self.instance(number)
        limits, changes = {"memory_mb": limit}, {}
        if guest is None or guest.host is None:
            task, method, changes = "unshelving", "unshelve_instance", {"vm_state": SHELVED}
            arguments = {"filter_properties": {"limits": limits}}
        else:
            task, method = "rebuilding", "rebuild_instance"
            arguments = {"limits": limits, "new_pass": "x", "recreate": True}
        if guest is not None and is_asked:
            self.write(guest, task_state=task, **changes)
        self.fleet.order(self.hosts["runs"], instance, method, host, **arguments)
        self.hosts["runs"].audit()  # the one that was down comes back
        news = []
        if guest is not None and guest.task_state == task:
            guest.task_state = None
            if self.fits(guest, host, limit, guest.sizes[1]):
                guest.host, guest.vm_state = host, "active"
                news = [("update", host, [guest.uuid])]
            else:
                guest.fault = "MB of memory"
        self.expect(*news)

    @rule(number=NUMBERS, host=ON, is_node=ANY)
    def lose(self, number, host, is_node):
        """Lose an instance or a node behind the hosts' back; the next audit mends the sums."""
        instance, guest = self.instance(number)
        with self.fleet.database.write() as conn:
            if is_node:
                delete_host(conn, host)
                self.failures[host] = 0
            elif guest is not None:
                server_rows.destroy_instance(conn, guest.uuid)
                self.gone[number] = self.guests.pop(number).uuid
            else:
                (node,) = compute_nodes.list_all(conn, host)
                registration.update_node(conn, node.id, {"vcpus_used": 99, "memory_mb": 1})
        self.hosts["runs"].audit()

    @invariant()
    def rows_are_as_expected(self):
        for guest in self.guests.values():
            row = self.fleet.row(guest.uuid)
            assert (row.vm_state, row.task_state) == (guest.vm_state, guest.task_state)
            assert (row.host, row.node) == (guest.host, guest.host)
            assert (row.vcpus, row.memory_mb, row.root_gb) == guest.sizes
            assert guest.fault is None or guest.fault in self.fleet.fault(guest.uuid)
        for host in HOSTS:
            node = self.fleet.node(host)
            stats = json.loads(node.stats)
            present = [each for each in self.guests.values() if each.host == host]
            vcpus, memory_mb, disk_gb = (
                sum(each.sizes[index] for each in present) for index in range(3)
            )
            assert (node.vcpus, node.memory_mb) == (4, 4096)
            assert (node.vcpus_used, node.local_gb_used) == (vcpus, disk_gb)
            assert node.memory_mb_used == memory_mb + RESERVED_MB == 4096 - node.free_ram_mb
            assert node.running_vms == len(present) == int(stats["num_instances"])
            assert node.current_workload == sum(each.task_state is not None for each in present)
            assert stats["failed_builds"] == str(self.failures[host])


def test_rows_are_as_the_model_says_after_every_order(synced_file, tmp_path):
    count = itertools.count()

    def lives():
        copied = shutil.copy(synced_file, tmp_path / f"{next(count)}.sqlite")
        return Lives(Database(f"sqlite:///{copied}"))

    quick = settings(
        max_examples=examples(4),
        stateful_step_count=30,
        deadline=None,
        phases=[each for each in Phase if each is not Phase.explain],
        suppress_health_check=[*HealthCheck],
    )
    run_state_machine_as_test(lives, settings=quick)
