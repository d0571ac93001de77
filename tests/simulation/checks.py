"""Checks of what must hold, from outside: they know the rows, the answers and who lives."""

from dataclasses import dataclass, field
from typing import Any

from tests.simulation import spec
from tests.simulation.fleet import INSTANCES, NODES, Fleet
from tests.simulation.kernel import Kernel
from tests.simulation.server import Change, Row, Server

#: After the claims went back, those of living workers are there again by then.
WRITTEN_AGAIN_IN_SECONDS = 10.0
#: A request that is refused sooner has not waited in vain for decisions that are not written.
SOON_SECONDS = 1.5
#: Until then somebody who knows what is missing has seen it, and has written the mark.
UNSEEN_SECONDS = 3.0
_WATCHED = {"claims", INSTANCES, NODES}


@dataclass(eq=False)
class Asked:
    """One request, and all that was answered to it."""

    request_id: str
    gb: int
    names: tuple[str, ...]
    #: Hosts of the first answer; empty: refused; None: none yet.
    answer: tuple[str, ...] | None = None
    handled: int = 0
    begun_at: float = 0.0
    #: True while it would have fitted at every moment since it was first received, beside what is
    #: written; the second if all others under way take something, too.
    fits: tuple[bool, bool] = (True, True)
    answered_by: Any = None
    #: When the first answer began to be decided: what it claims may be lost ever since.
    answer_begun_at: float = 0.0
    is_over: bool = False
    replies: list[Any] = field(default_factory=list)


class Checks:
    """Called at every commit, receipt and reply."""

    def __init__(self, kernel: Kernel, server: Server, fleet: Fleet) -> None:
        self._kernel, self._server, self._fleet = kernel, server, fleet
        #: Instances that callers were told a host for, until they are there or over.
        self.promised: dict[str, tuple[str, int, Any]] = {}
        self.handled: dict[str, Asked] = {}
        #: Host and who gave it by instance, whether the caller has heard of it or not.
        self._given: dict[str, tuple[str, Any]] = {}
        #: Instances that two requests ask for at once: which one is the later is not known.
        self.wanted_twice: set[str] = set()
        #: Requests whose caller has asked anew for the same instances.
        self.given_up: set[str] = set()
        #: When the claims last went back.
        self.restored_at = float("-inf")
        self.is_marked = True
        #: Generations of hosts when somebody wrote a mark, until it has forgotten them.
        self._marked: dict[Any, set[int]] = {}
        #: Hosts given away by those who knew just what the claims went back to, before anybody saw;
        #: and those where an instance arrives whose claim was lost, and its scheduler died.
        self.unseen: set[str] = set()

    # --- commits -------------------------------------------------------------------------

    def committed(self, changes: list[Change]) -> None:
        """Look at what a commit has changed."""
        action = spec.action(changes)
        if action is None:
            self._kernel.fail("specification", f"no action makes {changes}"[:500])
        by, hosts = self._kernel.current.process, self._server.tables["claim_hosts"].values()
        known = {row.generation for row in hosts}
        if action == "mark":
            self._marked[by] = known
        elif action in ("forget", "begin", "close") and known & self._marked.pop(by, set()):
            self._kernel.fail("specification", f"generations hold after the mark of {by.name}")
        self.is_marked |= action == "forget" or (action == "mark" and not hosts)
        is_early = self._kernel.now < self.restored_at + UNSEEN_SECONDS
        if action == "claim" and not self.is_marked and is_early:
            self.unseen |= {
                after.host for table, _id, _b, after in changes if table == "claim_hosts"
            }
        if not any(table in _WATCHED for table, *_others in changes):
            return
        self.unseen |= {
            a.host for table, _id, _b, a in changes if table == INSTANCES and self._is_unknown(a)
        }
        self.limits()
        for table, _number, before, after in changes:
            if table == "claims" and before is not None and before.closed_at is None:
                self._closed(before, after)

    def deadlocked(self, key: tuple[Any, ...]) -> None:
        """Hosts are locked in one order."""
        if key[0] == "claim_hosts" and len(key) == 2:
            self._kernel.fail("deadlock", f"two wait for each other on host {key[1]}")

    def limits(self) -> None:
        """No host is over its limits; and see who could not be given a host just now."""
        for host, several in self._taken().items():
            if sum(several.values()) > self._fleet.host_gb and host not in self.unseen:
                self._kernel.fail("over", f"{host} has {self._fleet.host_gb} GB, gave {several}")
        if self.handled:
            self._see_who_fits()

    def _is_unknown(self, instance: Row) -> bool:
        """True when nobody who lives knows that it is claimed for on its host.

        The claim was lost, or another request for the instance, which came at once, replaced it.
        """
        uuid, hosts = instance.uuid, self.claimed_hosts(instance.uuid)
        if not instance.host or instance.host in hosts:
            return False
        by = self.promised[uuid][2].process if uuid in self.promised else None
        if uuid in self.wanted_twice:
            by = self._given.get(uuid, (None, None))[1]
        is_lost = self.restored_at > 0 and by is not None and by.dead
        return is_lost or (uuid in self.wanted_twice and any(hosts))

    def is_written_again(self) -> bool:
        """True while claims that went back are being written again."""
        return self._kernel.now < self.restored_at + WRITTEN_AGAIN_IN_SECONDS

    def _taken(self) -> dict[str, dict[str, int]]:
        """By host the memory of the instances that are there, or that it is claimed for.

        Claims that went back do not count where a living scheduler has moved the instance since,
        nor those of a request that its caller has given up: who replaced them may be dead.
        Nor do those of a late copy that takes an arrived server for a moved one: no caller waits.
        """
        taken: dict[str, dict[str, int]] = {host: {} for host in self._fleet.hosts}
        for row in self._server.tables[INSTANCES].values():
            if row.host is not None and not row.deleted:
                taken[row.host][row.uuid] = row.memory_gb
        for row in self._server.tables["claims"].values():
            if (
                row.closed_at is None
                and row.host
                and not self._is_over(row.consumer_uuid, row.host)
                and not self._is_moved(row)
            ):
                taken[row.host][row.consumer_uuid] = row.memory_mb // 1024
        for uuid, (host, gb, scheduler) in self.promised.items():
            if not scheduler.process.dead:
                taken[host][uuid] = gb
        return taken

    def _is_moved(self, claim: Row) -> bool:
        host, process = self._given.get(claim.consumer_uuid, (claim.host, None))
        is_given_up = claim.request_id.partition("/")[0] in self.given_up
        is_moved = host != claim.host and not process.dead
        return self.restored_at > 0 and (is_moved or is_given_up)

    def restored(self) -> None:
        """The claims went back; what their schedulers know still counts."""
        self.restored_at, self.is_marked = self._kernel.now, False
        self._marked.clear()
        self.limits()

    def _is_over(self, uuid: str, host: str, source_host: str | None = None) -> bool:
        """True when the instance is deleted, failed or on another host than these.

        A request that comes again after its claims are lost may find it there, and move it.
        """
        number = self._fleet.ids.get(uuid)
        if number is None:
            return False
        row = self._server.tables[INSTANCES][number]
        elsewhere = row.host not in (host, source_host) if row.host else row.vm_state == "error"
        return bool(row.deleted or elsewhere)

    def _closed(self, before: Row, after: Row | None) -> None:
        """A claim that still counts may only make way for another one of its instance.

        One that went back may be closed again until the other is written again.
        """
        if after is not None and after.closed_at is None:
            return
        uuid = before.consumer_uuid
        host, _gb, scheduler = self.promised.get(uuid, (None, 0, None))
        if host != before.host or (self.is_written_again() and not scheduler.process.dead):
            return
        if not self.claimed_hosts(uuid):
            self._kernel.fail("closed", f"the claim of {uuid} on {before.host} was still needed")

    # --- refusals ------------------------------------------------------------------------

    def _see_who_fits(self) -> None:
        free = self._free()
        for asked in self.handled.values():
            if asked.fits[0]:
                alone, beside = self._slots(asked, free)
                wanted = len(asked.names)
                asked.fits = alone >= wanted, asked.fits[1] and beside >= wanted

    def _free(self) -> dict[str, int]:
        """The memory that schedulers may think to be free, at least."""
        fleet = self._fleet
        free = {host: fleet.host_gb - fleet.reported_gb(host) for host in fleet.hosts}
        for row in self._server.tables["claims"].values():
            if row.closed_at is None and row.host and not self._is_counted(row):
                free[row.host] -= row.memory_mb // 1024
        return free

    def _is_counted(self, claim: Row) -> bool:
        number = self._fleet.ids.get(claim.consumer_uuid)
        if number is None:
            return False
        row = self._server.tables[INSTANCES][number]
        is_there = row.host == claim.host != claim.source_host and (
            row.task_state == "spawning" or row.vm_state == "active"
        )
        return is_there or self._is_over(claim.consumer_uuid, claim.host, claim.source_host)

    def _slots(self, asked: Asked, free: dict[str, int]) -> tuple[int, int]:
        """Places for *asked*; and if all others under way take what hinders it most."""
        others = sum(
            each.gb * len(each.names) for each in self.handled.values() if each is not asked
        )
        costs = []
        for left in free.values():
            slots, rest = divmod(max(left, 0), asked.gb)
            costs += [rest + 1, *[asked.gb] * (slots - 1)] if slots else []
        alone = len(costs)
        costs.sort()
        for cost in costs:
            others -= cost
            if others < 0:
                break
            costs = costs[1:]
        return alone, len(costs)

    # --- requests ------------------------------------------------------------------------

    def received(self, asked: Asked) -> None:
        """A scheduler begins with a request."""
        if not asked.handled and not self._is_refused(asked):
            asked.fits, asked.begun_at = (True, True), self._kernel.now
        asked.handled += 1
        self.handled[asked.request_id] = asked
        self._see_who_fits()

    def _is_refused(self, asked: Asked) -> bool:
        """True when the refusal is written, whether anybody was told of it or not."""
        rows, its_id = self._server.tables["claims"].values(), f"{asked.request_id}/"
        return any(row.request_id.startswith(its_id) and not row.memory_mb for row in rows)

    def left(self, asked: Asked) -> None:
        """A scheduler is done with it, or died."""
        asked.handled -= 1
        if not asked.handled:
            self.handled.pop(asked.request_id, None)

    def answered(self, asked: Asked, answer: tuple[str, ...]) -> None:
        """Every answer to one request is the same; a refusal has its reason."""
        self._see_who_fits()
        began, before, process = asked.begun_at, asked.answer, self._kernel.current.process
        if before is None:
            asked.answer_begun_at = began
            asked.answered_by = process
        elif before != answer and not self._is_lost(asked):
            self._kernel.fail("answers", f"{asked.request_id} got {before}, then {answer}")
        asked.answer = answer
        if answer and not asked.is_over:
            given = zip(asked.names, answer, strict=True)
            self._given |= {name: (host, process) for name, host in given}
        # While the database is away, or has gone back, decisions are on the state of before.
        if before is not None or asked.is_over or self.restored_at >= began:
            return
        if answer:
            self._claimed(asked, answer)
        elif asked.fits[self._kernel.now > began + SOON_SECONDS] and self._server.failed_at < began:
            free = self._free()
            self._kernel.fail("refused", f"{asked.request_id} of {asked.gb} GB fits: {free}")

    def _is_lost(self, asked: Asked) -> bool:
        """True when nobody who lives knows its answer, or it is to be written again just now.

        Refusals take nothing, and servers that are over neither: they are not written again.
        """
        if self.restored_at < asked.answer_begun_at:
            return False
        is_known = asked.answer and not asked.is_over and not asked.answered_by.dead
        is_known = is_known and self.wanted_twice.isdisjoint(asked.names)  # it may be replaced
        return self.is_written_again() or not is_known

    def give_up(self, asked: Asked) -> None:
        """The caller asks anew for the same instances."""
        asked.is_over = True
        self.given_up.add(asked.request_id)
        for name in asked.names:
            self.promised.pop(name, None)

    def claimed_hosts(self, uuid: str) -> list[str]:
        rows = self._server.tables["claims"].values()
        return [row.host for row in rows if row.consumer_uuid == uuid and row.closed_at is None]

    def _claimed(self, asked: Asked, answer: tuple[str, ...]) -> None:
        rows = self._server.tables["claims"].values()
        found = {(row.consumer_uuid, row.host) for row in rows if row.closed_at is None}
        for uuid, host in zip(asked.names, answer, strict=True):
            is_replaced = uuid in self.wanted_twice and any(uuid == each for each, _host in found)
            if (uuid, host) not in found and not is_replaced and not self._is_over(uuid, host):
                self._kernel.fail("unclaimed", f"{uuid} was told {host}, without a claim")
