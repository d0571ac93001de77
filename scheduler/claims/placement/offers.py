"""The hosts that one request may choose from, and their candidates: asked about or listed."""

import enum
import functools
import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.claims.backend import Offered, Selections
from scheduler.claims.placement.candidates import (
    AllocationRequest,
    CandidateQuery,
    Candidates,
    Wish,
    fleet_of,
)
from scheduler.claims.placement.client import VERSION, Requester
from scheduler.claims.placement.memory import Memory
from scheduler.engine.record import PlacementUse
from scheduler.hosts.candidates import Candidates as Hosts
from scheduler.hosts.candidates import Scope, narrow
from scheduler.threads import in_thread

LOG = logging.getLogger(__name__)

#: Most queries for the fleet's candidates when others took what Placement had offered.
QUERIES: Final = 10
CHOSEN: Final = "chosen"
#: So many hosts that were not asked about are looked at for the cause of a refusal.
MOST_EXPLAINED: Final = 3
#: Hosts that are asked about at once: as many as a worker has connections by default.
AT_ONCE: Final = 2
_NOTHING: Final = (
    "Got no allocation candidates from the Placement API. This could be due to insufficient "
    "resources or a temporary occurrence as compute nodes start up."
)
_TOO_LATE: Final = (
    "Placement refused every host that it was asked about in [scheduler] placement_deadline_seconds"
)


class NoCandidates(Exception):
    """Reason why Placement has no host; the caller only learns that there is none."""


class _Stage(enum.Enum):
    """The hosts that a request may choose from."""

    CHOSEN = "any that is not known to be refused; Placement is asked about it"
    LISTED = "those that Placement lists for the fleet"
    REST = "any that was not refused, after a list that had no place for more"


class Offers:
    """Candidates for the instances of *spec*, as far as they are wanted.

    ``known`` has them by node: asked for, listed, or built for an alternate.
    """

    def __init__(
        self,
        query: CandidateQuery,
        memory: Memory,
        options: Any,
        spec: Any,
        requester: Requester,
        use: PlacementUse,
    ) -> None:
        self._use = use
        self._query, self._memory, self._spec, self._requester = query, memory, spec, requester
        self.asks = options.placement_query == CHOSEN
        self.known: Candidates = {}
        #: Number of instances of the request that a node takes, where a claim was refused.
        self.room: dict[str, int] = {}
        self._stage, self._asks_nodes = _Stage.CHOSEN, True
        self._queries_left, self._most_refused = QUERIES, options.placement_refusals
        self._segments: list[list[str]] = []
        self._wishes: list[Wish] = []
        #: The query by which answers are remembered.
        self._key = ""
        #: Nodes to be asked about before a claim: the candidate was built, or the only one refused.
        self._unasked: set[str] = set()
        #: Nodes that Placement refused when it was asked about them, and what they hold already.
        self._refused: dict[str, int] = {}
        #: Per node that is asked about once more the number of instances that it holds.
        self._held: dict[str, int] = {}
        #: Nodes of alternates that are still to be asked about, with their hosts.
        self._others: dict[str, str] = {}
        #: Number of refusals before the last grant or list.
        self._refused_before = 0
        self._is_listed = self._is_all = self._passes_over = False
        #: True when others have claimed what Placement had offered.
        self._is_beaten = False

    @property
    def is_to_be_listed(self) -> bool:
        """True when the candidates of the fleet are fetched next."""
        return self._stage is _Stage.LISTED and not self._is_listed

    def find_segments(self) -> None:
        """Ask about the networks; raises NoValidHost, NovaException and Unavailable."""
        self._segments = self._query.segments(self._spec, self._requester)

    def offered(self, host_manager: Any) -> Offered:
        """The hosts to choose from; raises NoValidHost and Unavailable."""
        if not self._wishes:
            with host_manager.lock:
                fleet = fleet_of(host_manager, self._spec)
            self._wishes = self._query.wishes(self._spec, fleet, self._segments)
            self._key = self._wishes[0].for_fleet()
            nodes_tell = all(each.for_node("any", self._memory.shared) for each in self._wishes)
            if not (self.asks and nodes_tell):
                self._stage, self._asks_nodes = _Stage.LISTED, False
        if self._stage is _Stage.LISTED:
            self._list()
        room: dict[str, int | None] = {**self._refused, **self.room}
        if self._stage is _Stage.LISTED and not self._asks_others:
            return Offered({node: room.get(node) for node in self.known})
        if self._stage is not _Stage.CHOSEN:
            return Offered(room, others=True)
        self._passes_over = bool(room)
        return Offered(room, others=True, grantable=self._grantable)

    def _grantable(self, hosts: Hosts) -> np.ndarray:
        """Mask of the *hosts* that Placement is not known to refuse."""
        found = self._memory.grantable(self._key, self._wishes, hosts)
        self._passes_over |= not found.all()
        return found

    @property
    def _asks_others(self) -> bool:
        """True when a list that had no place for more does not keep from better hosts.

        After some refusals, the best of those on the list will do.
        """
        is_full = self._asks_nodes and not self._is_all
        return is_full and len(self._refused) < self._refused_before + self._most_refused

    def _list(self) -> None:
        """Fetch the candidates of the fleet, unless they are there; raises NoValidHost."""
        if not self._is_listed:
            self._queries_left -= 1
            began = time.monotonic()
            answer = self._query.listed(self._wishes, self._requester)
            found, self._is_all = answer.candidates, answer.is_all
            self._memory.fetched(self._key, time.monotonic() - began, is_all=self._is_all)
            self.known, self._is_listed = found, True
            self._use.has_offered |= bool(found)
            self._refused = {e: held for e, held in self._refused.items() if e not in found}
            self._refused_before = len(self._refused)
            self._unasked.clear()
            if self.asks:
                self._memory.note_list(self._key, answer)
        if not self.known:
            LOG.info(_NOTHING)
            raise errors.NoValidHost(reason="") from NoCandidates(_NOTHING)

    def go_on(self) -> bool:
        """Find more hosts to choose from; False if there are none, and a refusal is final.

        Before that Placement has listed its candidates, unless filters refuse all hosts.
        """
        is_listed = self._stage is _Stage.LISTED and self._is_listed
        lists_again = is_listed and self._is_beaten and self._queries_left
        if lists_again or self._stage is _Stage.CHOSEN and self._passes_over:
            self._turn_to_list()
        elif is_listed and self._asks_nodes and not self._is_all:
            self._stage = _Stage.REST
        else:
            return False
        return True

    def _turn_to_list(self) -> None:
        self._stage, self._is_listed, self._is_beaten = _Stage.LISTED, False, False
        self.room.clear()
        self._held.clear()

    def ask(self, selections: Selections, *, are_claimed: bool) -> bool:
        """Have a candidate for every host chosen; False if one is refused.

        Most alternates are left to :meth:`ask_others`.  Raises NoValidHost at the deadline, and
        Unavailable.
        """
        chosen = dict.fromkeys(first.compute_node_uuid for first, *_others in selections)
        hosts = {each.compute_node_uuid: each.service_host for row in selections for each in row}
        wanted = self._to_be_asked(chosen.keys(), hosts.keys(), are_claimed=are_claimed)
        is_first = self._stage is _Stage.CHOSEN
        if is_first and self._memory.prefers_list(self._key, len(wanted)):
            self._turn_to_list()
            return False
        count = len(chosen.keys() & wanted)
        count += count % AT_ONCE
        self._others = {node: hosts[node] for node in wanted[count:]}
        return self._grants({node: hosts[node] for node in wanted[:count]})

    def ask_others(self) -> bool:
        """Have a candidate for the other alternates; as :meth:`ask`, but ends with a refusal."""
        return self._grants(self._others, ends=True)

    def _grants(self, hosts: Mapping[str, str], *, ends: bool = False) -> bool:
        """Ask about nodes, each with its host, until one is refused if that *ends* it."""
        wanted, before = list(hosts), len(self._refused)
        for at in range(0, len(wanted), AT_ONCE):
            if ends and len(self._refused) > before:
                break  # the next decision may have other alternates
            nodes = wanted[at : at + AT_ONCE]
            self._use.asked += [hosts[node] for node in nodes]
            self._ask_about(nodes)
        refused = len(self._refused)
        if refused == before:
            return True
        news = {node: hosts[node] for node in list(self._refused)[before:]}
        self._use.refused.update(dict.fromkeys(news.values(), ""))
        self._memory.find_causes(self._wishes, news, self._use.refused)
        if self._stage is _Stage.CHOSEN:
            if any(node in self.known and node not in self._unasked for node in wanted):
                self._refused_before = refused
            in_a_row = refused - self._refused_before
            if in_a_row >= self._most_refused or self._memory.gives_up(in_a_row):
                self._turn_to_list()
        return False

    def _to_be_asked(self, chosen: Set[str], hosts: Set[str], *, are_claimed: bool) -> list[str]:
        """The nodes whose candidates are neither known nor built; raises Unavailable.

        Where nothing but room is wanted, and many questions would be dear, claims tell who has it.
        """
        wanted = [node for node in chosen if node not in self.known or node in self._unasked]
        others = (node for node in hosts if node not in chosen and node not in self.known)
        wanted += [node for node in others if not self._build(node)]
        is_first, wants_room = self._stage is _Stage.CHOSEN, self._wishes[0].is_plain
        if is_first and wants_room and are_claimed and self._memory.are_dear(len(wanted)):
            self._memory.look_now(self._requester)
            wanted = [node for node in wanted if not self._build(node)]
            self._unasked -= chosen
        return wanted

    def name(self, selections: Selections, requests: Iterable[AllocationRequest]) -> None:
        """Have *selections* name the *requests* of those chosen, and what alternates offer."""
        for (chosen, *others), request in zip(selections, requests, strict=False):
            offered = [(chosen, request)]
            found = ((each, self.known.get(each.compute_node_uuid)) for each in others)
            offered += [(each, candidates[0]) for each, candidates in found if candidates]
            for each, candidate in offered:
                each.allocation_request = json.dumps(candidate)
                each.allocation_request_version = VERSION

    def find_causes(self, host_manager: Any) -> None:
        """Have it found out, beside the request, why Placement offers some hosts no room."""
        if not self.asks or self._stage is _Stage.CHOSEN:
            return  # nothing is remembered of providers, or filters refused them
        asked = self._use.refused
        with host_manager.lock:
            table = host_manager.table
            hosts = narrow(Hosts(Scope(table, 0.0, 0.0), table.order), self._spec).hosts
            named = ((table.value(row, "uuid"), table.value(row, "host")) for row in hosts.rows)
            others = (each for each in named if each[0] not in self.known and each[1] not in asked)
            nodes = dict(itertools.islice(others, MOST_EXPLAINED))
        self._memory.find_causes(self._wishes, nodes, asked)

    def lacks_devices(self, chosen: list[objects.Selection]) -> None:
        """Choose the last host *chosen* less often: its offers have no free devices for that."""
        node = chosen[-1].compute_node_uuid
        if held := [each.compute_node_uuid for each in chosen[:-1]].count(node):
            self.room[node] = held
            return
        self._refused[node] = 0
        self.known.pop(node, None)
        self._use.refused[chosen[-1].service_host] = "devices that are offered are not free there"

    def note_refused_claim(self, node: str, candidate: Any, held: int, *, is_beaten: bool) -> None:
        """Claim another candidate on *node*, or no more than the instances *held* there.

        Others took it if *is_beaten*.  Else one server may have taken what the candidate of the
        next one names, while other providers in the tree, or some that share, have more of it.
        """
        self._is_beaten |= is_beaten
        rest = [each for each in self.known[node] if each != candidate]
        if rest:
            self.known[node] = rest
        elif self._may_have_more(node) and self._held.get(node) != held:
            self._held[node] = held
            self._unasked.add(node)
        else:
            self.room[node] = held

    def _may_have_more(self, node: str) -> bool:
        """True when a question about *node* may give another candidate."""
        classes = self._wishes[0].amounts.keys()
        is_one = self._memory.is_flat(node, classes) and self._memory.shared.isdisjoint(classes)
        return self._asks_nodes and not is_one

    def _build(self, node: str) -> bool:
        """Build the candidate of an alternate that is granted if it has the room.

        Nobody else in its tree may have what is asked for.
        """
        built, wish = None, self._wishes[0]
        is_granted = wish.is_plain or self._memory.is_granted(self._key, node)
        if is_granted and len(self._wishes) == 1 and self._memory.is_flat(node, wish.amounts):
            built = wish.on_root(node, self._memory.shared)
        if built is None:
            return False
        self.known[node] = [built]
        self._unasked.add(node)
        return True

    def _ask_about(self, nodes: Sequence[str]) -> None:
        """Ask Placement about *nodes* at once; remember refusals.  Raises NoValidHost."""
        began = time.monotonic()
        if self._stage is _Stage.REST and began > self._requester.ends_at:
            raise errors.NoValidHost(reason="") from NoCandidates(_TOO_LATE)
        query, wishes, shared = self._query, self._wishes, self._memory.shared
        answers = {
            node: in_thread(functools.partial(query.asked, wishes, node, shared, self._requester))
            for node in nodes
        }
        found = {node: answer.result() for node, answer in answers.items()}
        self._memory.asked((time.monotonic() - began) / len(nodes))
        for node, answer in found.items():
            if node not in self._held:
                self._memory.note_answer(self._key, node, answer)
            self._unasked.discard(node)
            if node in answer.candidates:
                self._use.has_offered = True
                self.known[node] = answer.candidates[node]
            else:
                self._refused[node] = held = self._held.get(node, 0)
                if not held:
                    self.known.pop(node, None)
