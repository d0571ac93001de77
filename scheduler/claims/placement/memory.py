"""Memory of the latest answers: used to pass over hosts and to ask less, never to accept one."""

import functools
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from oslo_log import log as logging

from scheduler.claims.placement.candidates import DISABLED_TRAIT, AllocationRequest, Answer, Wish
from scheduler.claims.placement.client import PlacementClient, Requester, Unavailable, in_form
from scheduler.claims.placement.facts import AGGREGATE, FREE, TRAIT, Facts
from scheduler.hosts.candidates import Candidates
from scheduler.threads import BatchThread

LOG = logging.getLogger(__name__)

SHARING: Final = "MISC_SHARES_VIA_AGGREGATE"
#: Refusals that wait for their cause at most; those on top of these keep none.
MOST_REFUSALS: Final = 8
#: Seconds between two looks at shared classes, and at all trees: some 0.9 kB per provider.
SHARED_SECONDS, TREES_SECONDS = 60.0, 600.0
#: Longest time that a look takes: the start of a worker waits for the first one.
LOOK_SECONDS: Final = 10.0
#: Queries that are remembered; at 10,000 nodes each takes 130 kB.
MOST_QUERIES: Final = 128
#: So many questions are asked without a thought about their price.
FEW_QUESTIONS: Final = 5
#: Share of the list's price that questions in vain may cost.
IN_VAIN: Final = 0.1
#: Seconds that a question and the list take until they were measured: 1,000 nodes.
QUESTION_SECONDS, LIST_SECONDS = 0.02, 0.3
#: Weight of the latest measurement; and what a price falls by where it is not paid.
_LATEST, _FALL = 0.3, 0.95


class Memory:
    """Refusals and their causes for at most *seconds*; shared classes, flat trees, and prices."""

    def __init__(self, client: PlacementClient, seconds: Callable[[], float]) -> None:
        #: Resource classes that some provider shares.
        self.shared: frozenset[str] = frozenset()
        self.facts = Facts()
        #: Per root the resource classes of the other providers in its tree; None: not known.
        self._others: dict[str, frozenset[str] | None] = {}
        self._disabled: frozenset[str] = frozenset()
        self._client, self._seconds = client, seconds
        self._question_seconds, self._list_seconds = QUESTION_SECONDS, LIST_SECONDS
        #: When a list was cut off last, and the latest queries whose lists were whole.
        self._cut_off_at = -math.inf
        self._whole: set[str] = set()
        #: When providers were looked up last.
        self.looked_at: float | None = None
        self._refusals = BatchThread("refusals", self._find_causes, MOST_REFUSALS)
        #: Per query, and place, when it was granted; negative where it was refused.
        self._said: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = threading.Lock()
        self._shared_at = self._trees_at = -math.inf
        #: Per trait, when it was looked up who has it.
        self._traits_at: dict[str, float] = {}

    def note_answer(self, query: str, node: str, answer: Answer) -> None:
        """Remember whether *node* was granted, and what it is like."""
        self._learn(answer.providers)
        place, now = self.facts.place_of(node), time.monotonic()
        with self._lock:
            self._of(query)[place] = now if answer.candidates else -now

    def note_list(self, query: str, answer: Answer) -> None:
        self._learn(answer.providers)
        places, now = [*map(self.facts.place_of, answer.candidates)], time.monotonic()
        with self._lock:
            said = self._of(query)
            if answer.is_all:
                said[:] = -now
            said[places] = now

    @in_form("candidates")
    def note_claim(self, node: str, request: AllocationRequest) -> None:
        for each in request["allocations"].values():
            self.facts.take(node, each["resources"])

    def grantable(self, query: str, wishes: Sequence[Wish], hosts: Candidates) -> np.ndarray:
        """Mask of the *hosts* that Placement does not refuse, as far as is known."""
        places = hosts.per_document("uuid", self.facts.place_of, np.int64, key=self)
        since = max(time.monotonic() - self._seconds(), 0)
        with self._lock:
            is_refused = self._of(query)[places] < -since
        needs = [each.needs(self.shared) for each in wishes]
        masks = [self.facts.refused(each, since)[places] for each in needs]
        found: np.ndarray = ~(is_refused | np.logical_and.reduce(masks))
        return found

    def is_granted(self, query: str, node: str) -> bool:
        place, since = self.facts.place_of(node), max(time.monotonic() - self._seconds(), 0)
        with self._lock:
            return bool(self._of(query)[place] > since)

    @in_form("providers")
    def _learn(self, providers: Mapping[str, Mapping[str, Any]]) -> None:
        """Take from an answer what its *providers* have; it has whole trees of them."""
        others: dict[str, set[str]] = {e["root_provider_uuid"]: set() for e in providers.values()}
        free: dict[str, Counter[str]] = {root: Counter() for root in others}
        for uuid, each in providers.items():
            root, resources = each["root_provider_uuid"], each.get("resources", {})
            if uuid != root:
                others[root].update(resources)
            free[root].update({n: e["capacity"] - e["used"] for n, e in resources.items()})
        # In place: other threads may put another mapping there meanwhile.
        self._others.update({root: frozenset(e) for root, e in others.items()})
        now = time.monotonic()
        complete = [root for root in others if providers[root].keys() >= {"resources", "traits"}]
        self.facts.learn(FREE, now, {root: free[root] for root in complete})
        alone = [root for root in complete if not others[root]]
        traits = {root: dict.fromkeys(providers[root]["traits"], 1) for root in alone}
        self.facts.learn(TRAIT, now, traits)

    def find_causes(
        self, wishes: Sequence[Wish], nodes: Mapping[str, str], causes: dict[str, str]
    ) -> None:
        """Learn, beside the requests, why *nodes* were refused; put it into *causes* by name.

        One request after the other, and not many: others may pass over the same hosts soon.
        """
        known = {node: host for node, host in nodes.items() if node in self._others}
        self._refusals.put((wishes, known, causes))

    def _find_causes(
        self, several: list[tuple[Sequence[Wish], Mapping[str, str], dict[str, str]]]
    ) -> None:
        for wishes, nodes, causes in several:
            requester = Requester(None, None, None).within(LOOK_SECONDS)
            try:
                for node, host in nodes.items():
                    causes[host] = "; ".join(self._cause(wishes[0], node, requester))
            except Unavailable as error:
                LOG.debug("The cause of a refusal is not known: %r", error)

    @in_form("parts")
    def _cause(self, wish: Wish, node: str, requester: Requester) -> list[str]:
        """Learn which needs *node* does not meet: only of amounts if others are in its tree."""
        needs, since = wish.needs(self.shared), time.monotonic() - self._seconds()
        is_alone = self._others.get(node) == frozenset()
        facts = self.facts if is_alone else Facts()
        unmet = facts.unmet(node, needs, since)
        if not unmet:
            part = functools.partial(self._client.part_of, node, requester=requester)
            used, at, inventories = part("usages"), time.monotonic(), part("inventories")
            free = {
                name: (each["total"] - each["reserved"]) * each["allocation_ratio"] - used[name]
                for name, each in inventories.items()
            }
            facts.learn(FREE, at, {node: free})
            for kind in (TRAIT, AGGREGATE) if is_alone else ():
                facts.learn(kind, at, {node: dict.fromkeys(part(f"{kind}s"), 1)})
            if not is_alone:
                needs = [e for e in needs if e.kind == FREE and free.keys() >= {*e.names}]
            unmet = facts.unmet(node, needs, since)
        for need, _found in unmet:
            for name in need.names if need.kind == TRAIT and not need.is_ban else ():
                self._look_for_trait(name, requester)
        return [need.text.format(found) for need, found in unmet]

    def _look_for_trait(self, name: str, requester: Requester) -> None:
        """Learn which providers have the trait *name*, for all hosts; not again soon."""
        now = time.monotonic()
        if now < self._traits_at.get(name, -math.inf) + self._seconds():
            return
        self._traits_at[name] = now
        having = {e["uuid"] for e in self._client.providers(f"required={name}", requester)}
        alone = [root for root, others in self._others.copy().items() if others == frozenset()]
        self.facts.learn_one(TRAIT, name, now, {root: float(root in having) for root in alone})

    def _of(self, query: str) -> np.ndarray:
        """The answers about *query*, with room for every place."""
        said = self._said.pop(query, np.zeros(0))
        if missing := self.facts.size - len(said):
            said = np.append(said, np.zeros(missing))
        self._said[query] = said
        if len(self._said) > MOST_QUERIES:
            self._said.popitem(last=False)
        return said

    def asked(self, seconds: float) -> None:
        """A question about one host took so many *seconds*."""
        self._question_seconds += _LATEST * (seconds - self._question_seconds)

    def fetched(self, query: str, seconds: float, *, is_all: bool) -> None:
        """The fleet's list for *query* took so many *seconds*, and had all hosts (*is_all*)."""
        self._list_seconds += _LATEST * (seconds - self._list_seconds)
        if is_all and len(self._whole) < MOST_QUERIES:
            self._whole.add(query)
        elif not is_all:
            self._whole.clear()
            self._cut_off_at = time.monotonic()

    def are_dear(self, questions: int) -> bool:
        """True when so many *questions* would cost more than the list."""
        price = questions * self._question_seconds
        return questions > FEW_QUESTIONS and price > self._list_seconds

    def prefers_list(self, query: str, questions: int) -> bool:
        """True when the list is to be fetched, as so many *questions* would cost more.

        Their price falls a little then, so that they are tried again.  A list that is cut off, as
        others were lately, saves no question: the best hosts may not be on it.
        """
        is_cut_off = time.monotonic() < self._cut_off_at + TREES_SECONDS
        if (is_cut_off and query not in self._whole) or not self.are_dear(questions):
            return False
        self._question_seconds *= _FALL
        return True

    def gives_up(self, refusals: int) -> bool:
        """True when so many questions in vain cost too much beside the list."""
        return refusals * self._question_seconds > IN_VAIN * self._list_seconds

    def is_flat(self, node: str, classes: Iterable[str]) -> bool:
        """True when *node* is enabled, and nobody else in its tree has any of these *classes*."""
        others = self._others.get(node)
        return others is not None and others.isdisjoint(classes) and node not in self._disabled

    def look(self, *, waits: bool = False) -> None:
        """Look providers up if that is due, in a thread unless the caller *waits* for it."""
        with self._lock:
            now = time.monotonic()
            if now < self._shared_at + SHARED_SECONDS:
                return
            self._shared_at = now
        if waits:
            self._look(now)
        else:
            threading.Thread(target=self._look, args=(now,), daemon=True).start()

    @in_form("providers")
    def look_now(self, requester: Requester) -> None:
        """Look up which classes are shared, and who is disabled; raises Unavailable."""
        sharing = self._client.providers(f"required={SHARING}", requester)
        several = [self._client.part_of(e["uuid"], "inventories", requester) for e in sharing]
        disabled = self._client.providers(f"required={DISABLED_TRAIT}", requester)
        self.shared = frozenset().union(*several)
        self._disabled = frozenset(each["uuid"] for each in disabled)

    def _look(self, now: float) -> None:
        requester = Requester(None, None, None).within(LOOK_SECONDS)
        try:
            self.look_now(requester)
            if now >= self._trees_at + TREES_SECONDS:
                with in_form("providers"):
                    providers = self._client.providers("", requester)
                    sizes = Counter(each["root_provider_uuid"] for each in providers)
                flat = frozenset[str]()
                self._others = {root: flat if n == 1 else None for root, n in sizes.items()}
                self._trees_at = now
            self.looked_at = now
        except Unavailable as error:
            LOG.warning("Providers cannot be looked up in Placement: %r", error)
