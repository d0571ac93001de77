"""Plans: hosts to drain, room for a flavor, hosts to free, rules that time has broken.

Every state between two moves obeys the filters, as each move is decided on the state after those
before it.
"""

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from scheduler import objects
from scheduler.hosts.reservations import Reservation
from scheduler.planning.mover import Mover, OutOfTime, by_size
from scheduler.planning.moves import Plan, Stuck
from scheduler.replay.measures import MEMORY, RESOURCES, Room

#: Hosts on which room is sought for one server, those that lack least first.
HOSTS_TRIED: Final = 16
#: Orders of hosts that are tried where the first one frees too few.
ORDERS: Final = 24
#: In larger fleets other orders take too long and free few more.
MOST_HOSTS_REORDERED: Final = 64

Track = Callable[[Iterable[Any]], Iterable[Any]]
"""Gives the same things, and sees how many of them are done."""


class Planner:
    """Makes one plan on the fleet of *mover*, whose servers may be anywhere then.

    *unmovable* has the reasons why servers cannot be moved, by uuid.
    """

    def __init__(self, mover: Mover, unmovable: Mapping[str, str], track: Track = iter) -> None:
        self._mover, self._reasons, self._track = mover, unmovable, track
        self._fleet = mover.fleet

    def drain(self, hosts: Sequence[str]) -> Plan:
        """Move every server off *hosts*; InvalidRequest names one that is not there."""
        mover, hosts = self._mover, list(dict.fromkeys(hosts))
        closed = list(itertools.chain.from_iterable(map(mover.rows_of, hosts)))
        plan = self._begin("drain", len(hosts))
        rows = mover.rows_but(closed)
        servers = by_size([each for host in hosts for each in self._fleet.servers_on(host)])
        plan.stuck += itertools.chain.from_iterable(map(self._unmovable, hosts))
        try:
            for server in self._track(servers):
                host, uuid = server.key[0], server.uuid or ""
                spec = self._fleet.spec_of[uuid]
                move = functools.partial(mover.move, server, f"drain {host}")
                if not (move(rows) or self._cleared(spec, rows, f"room for {uuid}", move)):
                    why = mover.refusal(spec, uuid, rows) or "no host stays free for it"
                    plan.stuck.append(Stuck(uuid, host, why))
        except OutOfTime:
            plan.is_cut_off = True
        return self._end(plan, filter(mover.is_empty, hosts))

    def fit(self, spec: objects.RequestSpec, count: int) -> Plan:
        """Make room for *count* servers of *spec*, with as few moves as are found."""
        mover, made = self._mover, list[Reservation]()
        plan, rows = self._begin("fit", count), mover.rows_but(())
        reason = f"room for {spec.flavor.name or 'a server'}"
        place = functools.partial(mover.fits, spec)
        try:
            for number in self._track(range(1, count + 1)):
                placed = place(rows) or self._cleared(spec, rows, reason, place)
                if placed is None:
                    name = f"server {number} of {count}"
                    plan.stuck.append(Stuck(name, "", mover.refusal(spec, name, rows) or ""))
                    break
                made.append(placed)
        except OutOfTime:
            plan.is_cut_off = True
        hosts = [each.key[0] for each in made]
        for each in made:
            self._fleet.reservations.release(each)
        return self._end(plan, hosts)

    def _cleared(
        self,
        spec: objects.RequestSpec,
        rows: np.ndarray,
        reason: str,
        take: Callable[[np.ndarray], Any],
    ) -> Any:
        """The first that *take* gets of a host of *rows* which others leave for *spec*, or None."""
        begun = len(self._mover.moves)
        for row in self._nearly_enough(spec, rows):
            if self._clear(spec, row, rows, reason) and (found := take(np.array([row]))):
                return found
            self._mover.take_back(begun)
        return None

    def _nearly_enough(self, spec: objects.RequestSpec, rows: np.ndarray) -> list[int]:
        """The rows that would have the room without their servers, those that lack least first."""
        needs, lacks = self._lacking(spec, rows)
        share = (lacks / np.maximum(needs, 1)).max(axis=0)
        order = np.argsort(share, kind="stable")
        keys = self._fleet.table.keys
        movable = (int(rows[at]) for at in order if share[at] > 0)
        with_servers = (row for row in movable if self._fleet.reservations.on(keys[row]))
        return list(itertools.islice(with_servers, HOSTS_TRIED))

    def _lacking(
        self, spec: objects.RequestSpec, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Need of *spec*, and what each of *rows* lacks, by resource."""
        disk_mb = (spec.root_gb + spec.ephemeral_gb) * 1024 + (spec.flavor.swap or 0)
        needs = np.array([[spec.vcpus], [spec.memory_mb], [disk_mb]], dtype=np.float64)
        return needs, needs - Room.from_rows(self._fleet.table, rows).free

    def _clear(self, spec: objects.RequestSpec, row: int, rows: np.ndarray, reason: str) -> bool:
        """Move servers off *row* until *spec* would have room there; False if that fails."""
        others, own = rows[rows != row], np.array([row])
        on_row = self._fleet.reservations.on(self._fleet.table.keys[row])
        servers = [each for each in on_row if each.uuid in self._fleet.spec_of]
        while (lacks := self._lacking(spec, own)[1][:, 0]).max() > 0 and servers:
            server = min(servers, key=lambda each: _waste(each, lacks))
            servers.remove(server)
            self._mover.move(server, reason, others)
        return bool(lacks.max() <= 0)

    def free_hosts(self, wanted: int, most_moves: int) -> Plan:
        """Empty *wanted* hosts more with at most so many moves, the cheapest ones first."""
        mover, plan = self._mover, self._end(self._begin("free-hosts", wanted), ())
        for order in self._orders(self._hosts_to_free(), random.Random(0)):
            mover.take_back(0)
            freed = self._free_in_order(order, wanted, most_moves, plan)
            if (len(freed), -len(mover.moves)) > (plan.reached, -len(plan.moves)):
                self._end(plan, freed)
            if plan.is_cut_off or plan.reached >= wanted:
                break
        return plan

    def _hosts_to_free(self) -> list[str]:
        """The hosts with servers that can all be moved, those with fewest and smallest first."""
        table, sizes = self._fleet.table, list[tuple[int, int, str]]()
        for host in table.rows_of_host:
            servers = self._fleet.servers_on(host)
            if servers and len(servers) == len(table.instances[host]):
                sizes.append((len(servers), sum(e.amount.ram_mb for e in servers), host))
        return [host for _count, _size, host in sorted(sizes)]

    def _orders(self, hosts: list[str], draws: random.Random) -> Iterable[list[str]]:
        yield hosts
        if len(hosts) > MOST_HOSTS_REORDERED:
            return
        yield sorted(hosts, key=lambda e: sum(s.amount.ram_mb for s in self._fleet.servers_on(e)))
        for _order in range(ORDERS):
            draws.shuffle(hosts)
            yield list(hosts)

    def _free_in_order(
        self, hosts: Sequence[str], wanted: int, most_moves: int, plan: Plan
    ) -> list[str]:
        """The hosts that were freed until *wanted* are, or the time of *plan* is over."""
        mover, table, freed = self._mover, self._fleet.table, list[str]()
        late, taking = list[str](), set[str]()
        closed = set(table.row_numbers(filter(mover.is_empty, table.rows_of_host)))
        for done, host in enumerate(self._track(itertools.chain(hosts, late))):
            if len(freed) >= wanted:
                break
            if host in taking and done < len(hosts):
                late.append(host)  # or servers would be moved twice
                continue
            own = table.row_numbers((host,))
            servers = by_size(self._fleet.servers_on(host))
            rows = mover.rows_but({*closed, *own})
            if len(mover.moves) + len(servers) > most_moves or not self._may_take(servers, rows):
                continue
            begun, is_free = len(mover.moves), False
            try:
                is_free = all(mover.move(each, f"free {host}", rows) for each in servers)
            except OutOfTime:
                plan.is_cut_off = True
            if is_free:
                freed.append(host)
                closed.update(own)
                taking.update(move.target for move in mover.moves[begun:])
            else:
                mover.take_back(begun)
            if plan.is_cut_off:
                break
        return freed

    def _may_take(self, servers: Sequence[Reservation], rows: np.ndarray) -> bool:
        free = Room.from_rows(self._fleet.table, rows).free[RESOURCES.index(MEMORY)]
        needed = sum(each.amount.ram_mb for each in servers)
        return bool(np.maximum(free, 0).sum() >= needed)

    def rules(self) -> Plan:
        """Find servers on hosts that a rule would refuse to them today, and move them."""
        mover, plan = self._mover, self._begin("rules", 0)
        rows, known = mover.rows_but(()), self._fleet.spec_of
        servers = [each for each in self._fleet.reservations if each.uuid in known]
        try:
            for server in self._track(sorted(servers, key=lambda e: (e.key, e.uuid or ""))):
                why = mover.broken_rule(server)
                if why is None:
                    continue
                plan.wanted += 1
                if mover.move(server, why, rows) is None:
                    plan.stuck.append(Stuck(server.uuid or "", server.key[0], why))
                else:
                    plan.reached += 1
        except OutOfTime:
            plan.is_cut_off = True
        return self._end(plan, ())

    def _unmovable(self, host: str) -> Iterable[Stuck]:
        """The instances of *host* that are no servers which can be moved here."""
        movable = {each.uuid for each in self._fleet.servers_on(host)}
        for uuid in self._fleet.table.instances.get(host, {}):
            if uuid not in movable:
                yield Stuck(uuid, host, self._reasons.get(uuid, "nothing is known of its request"))

    def _begin(self, goal: str, wanted: int) -> Plan:
        mover = self._mover
        return Plan(goal, wanted, before=mover.counts(), memory={"before": mover.memory()})

    def _end(self, plan: Plan, hosts: Iterable[str]) -> Plan:
        plan.hosts, plan.moves = list(hosts), list(self._mover.moves)
        if plan.goal != "rules":
            plan.reached = len(plan.hosts)
        plan.after, plan.memory["after"] = self._mover.counts(), self._mover.memory()
        return plan


def _waste(server: Reservation, lacks: np.ndarray) -> tuple[bool, float, str]:
    """Rank of *server* as one to leave: first those that free enough alone, the smallest first."""
    amount: Any = server.amount
    is_enough = bool((np.array((amount.vcpus, amount.ram_mb, amount.disk_mb)) >= lacks).all())
    size = float(amount.ram_mb)
    return not is_enough, size if is_enough else -size, server.uuid or ""
