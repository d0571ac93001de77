"""Memory of the latest answers: used to pass over hosts and to ask less, never to accept one."""

import functools
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from oslo_log import log as logging

from scheduler.claims.placement.candidates import DISABLED_TRAIT, Facts, Wish
from scheduler.claims.placement.client import PlacementClient, Requester, Unavailable

LOG = logging.getLogger(__name__)

SHARING: Final = "MISC_SHARES_VIA_AGGREGATE"
#: Seconds between two looks at the classes that are shared, and at the trees of providers, which
#: is a large answer (some 0.9 kB per provider).
SHARED_SECONDS, TREES_SECONDS = 60.0, 600.0
#: Longest time that a look takes: the start of a worker waits for the first one.
LOOK_SECONDS: Final = 10.0
#: Queries that are remembered, the latest first.
MOST_QUERIES: Final = 256
#: So many questions are asked without a thought about their price.
FEW_QUESTIONS: Final = 5
#: Share of the list's price that questions in vain may cost.
IN_VAIN: Final = 0.1
#: Seconds that a question and the list take until they were measured: 1,000 nodes.
QUESTION_SECONDS, LIST_SECONDS = 0.02, 0.3
#: Weight of the latest measurement; and what a price falls by where it is not paid.
_LATEST, _FALL = 0.3, 0.95


@dataclass(slots=True)
class _Said:
    """Answers about one query: the nodes refused, and when; the whole list, if it was fetched."""

    refused: dict[str, float] = field(default_factory=dict)
    listed: frozenset[str] | None = None
    listed_at: float = -math.inf


class Memory:
    """Refusals and their causes for at most *seconds*; shared classes, flat trees, and prices.

    *clock* never goes back.
    """

    def __init__(
        self,
        client: PlacementClient,
        seconds: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: Resource classes that some provider shares.
        self.shared: frozenset[str] = frozenset()
        self._flat: frozenset[str] = frozenset()
        self._disabled: frozenset[str] = frozenset()
        self._client, self._seconds, self._clock = client, seconds, clock
        self._question_seconds, self._list_seconds = QUESTION_SECONDS, LIST_SECONDS
        #: When providers were looked up last.
        self.looked_at: float | None = None
        self._facts: dict[str, Facts] = {}
        self._is_busy = False
        self._said: OrderedDict[str, _Said] = OrderedDict()
        self._lock = threading.Lock()
        self._shared_at = self._trees_at = -math.inf

    # --- hosts to pass over --------------------------------------------------------------

    def note_refusal(self, query: str, node: str) -> None:
        """Remember that *node* was refused."""
        with self._lock:
            self._of(query).refused[node] = self._clock()

    def note_list(self, query: str, nodes: frozenset[str]) -> None:
        """Remember that *nodes* are all that Placement has for *query*."""
        with self._lock:
            said = self._of(query)
            said.refused, said.listed, said.listed_at = {}, nodes, self._clock()

    def passed_over(
        self, query: str, wishes: Sequence[Wish]
    ) -> tuple[frozenset[str] | None, set[str]]:
        """The only nodes that Placement has, if that is known, and those it refuses."""
        with self._lock:
            said, since = self._of(query), self._clock() - self._seconds()
            said.refused = {node: at for node, at in said.refused.items() if at > since}
            self._facts = {node: each for node, each in self._facts.items() if each.at > since}
            lacking = {
                node
                for node, each in self._facts.items()
                if all(wish.lacking(each, self.shared) for wish in wishes)
            }
            return said.listed if said.listed_at > since else None, lacking.union(said.refused)

    def find_causes(
        self, wishes: Sequence[Wish], nodes: Mapping[str, str], causes: dict[str, str]
    ) -> None:
        """Learn, beside the requests, why *nodes* were refused; put it into *causes* by name.

        One request at a time: others may pass over the same hosts soon.
        """
        with self._lock:
            is_busy, self._is_busy = self._is_busy, True
        if not is_busy:
            arguments = (wishes, nodes, causes)
            threading.Thread(target=self._find_causes, args=arguments, daemon=True).start()

    def _find_causes(
        self, wishes: Sequence[Wish], nodes: Mapping[str, str], causes: dict[str, str]
    ) -> None:
        requester = Requester(None, None, None).within(LOOK_SECONDS)
        try:
            for node in nodes.keys() & self._flat:
                part = functools.partial(self._client.part_of, node, requester=requester)
                used, at = part("usages"), self._clock()
                free = {
                    name: (each["total"] - each["reserved"]) * each["allocation_ratio"] - used[name]
                    for name, each in part("inventories").items()
                }
                facts = Facts(at, frozenset(part("traits")), frozenset(part("aggregates")), free)
                causes[nodes[node]] = "; ".join(wishes[0].lacking(facts, self.shared))
                with self._lock:
                    self._facts[node] = facts
        except (Unavailable, LookupError, TypeError, AttributeError) as error:
            LOG.debug("The cause of a refusal is not known: %r", error)
        finally:
            self._is_busy = False

    def _of(self, query: str) -> _Said:
        said = self._said.setdefault(query, _Said())
        self._said.move_to_end(query)
        if len(self._said) > MOST_QUERIES:
            self._said.popitem(last=False)
        return said

    # --- prices --------------------------------------------------------------------------

    def asked(self, seconds: float) -> None:
        """A question about one host took so many *seconds*."""
        self._question_seconds += _LATEST * (seconds - self._question_seconds)

    def fetched(self, seconds: float) -> None:
        """The fleet's list took so many *seconds*."""
        self._list_seconds += _LATEST * (seconds - self._list_seconds)

    def prefers_list(self, questions: int) -> bool:
        """True when so many *questions* would cost more than the list.

        Their price falls a little then, so that they are tried again.
        """
        if questions <= FEW_QUESTIONS or questions * self._question_seconds <= self._list_seconds:
            return False
        self._question_seconds *= _FALL
        return True

    def gives_up(self, refusals: int) -> bool:
        """True when so many questions in vain cost too much beside the list."""
        return refusals * self._question_seconds > IN_VAIN * self._list_seconds

    # --- providers, looked up beside the requests ----------------------------------------

    def is_flat(self, node: str) -> bool:
        """True when *node* is known to have no other providers in its tree, and is enabled."""
        return node in self._flat and node not in self._disabled

    def look(self, *, waits: bool = False) -> None:
        """Look providers up if that is due, in a thread unless the caller *waits* for it."""
        with self._lock:
            now = self._clock()
            if now < self._shared_at + SHARED_SECONDS:
                return
            self._shared_at = now
        if waits:
            self._look(now)
        else:
            threading.Thread(target=self._look, args=(now,), daemon=True).start()

    def _look(self, now: float) -> None:
        requester = Requester(None, None, None).within(LOOK_SECONDS)
        providers = functools.partial(self._client.providers, requester=requester)
        try:
            sharing = providers(f"required={SHARING}")
            classes = [
                self._client.part_of(each["uuid"], "inventories", requester) for each in sharing
            ]
            self.shared = frozenset().union(*classes)
            disabled = providers(f"required={DISABLED_TRAIT}")
            self._disabled = frozenset(each["uuid"] for each in disabled)
            if now >= self._trees_at + TREES_SECONDS:
                sizes = Counter(each["root_provider_uuid"] for each in providers(""))
                self._flat = frozenset(root for root, size in sizes.items() if size == 1)
                self._trees_at = now
            self.looked_at = now
        except (Unavailable, LookupError, TypeError, AttributeError) as error:
            LOG.warning("Providers cannot be looked up in Placement: %r", error)
