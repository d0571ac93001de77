"""Base classes of filters.

``BaseHostFilter`` carries Nova's contract: a third-party filter implements ``host_passes`` and
is run host by host.  Filters that ship here derive from ``HostFilter`` and are written once, as
named conditions over columns; their ``host_passes`` is the same code on one row.  Reference page
filters, section 3.
"""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from oslo_context import context as oslo_context

from scheduler import errors, objects
from scheduler.hosts.candidates import Candidates, request_is_rebuild
from scheduler.hosts.host_state import HostState
from scheduler.objects.image import LEGACY_NAMES


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for removing hosts: a stable *code* and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer of ``host_passes`` that a host does not pass, with the sentence that says why.

    ``explain`` counts hosts by sentence: one that names the host says too much.
    """

    sentence: str

    def __bool__(self) -> bool:
        return False


Condition = tuple[Reason, np.ndarray]

Answers = tuple[list[int], dict[str, list[int]]]
"""The rows that pass, in order, and those that do not, by reason code."""

#: Reason code of a filter that only says yes or no.
UNSPECIFIED: Final = "unspecified"
#: Sentences that one filter may give in one run; all others count as unspecified.
MOST_SENTENCES: Final = 16


def hinted(spec_obj: Any, hint: str) -> list[str]:
    """The values of a scheduler hint; an empty text is none."""
    return [value for value in (spec_obj.scheduler_hints or {}).get(hint, ()) if value]


def extra_specs_of(spec_obj: Any) -> dict[str, str]:
    """The extra specs of the request's flavor; none without a flavor."""
    return {} if spec_obj.flavor is None else spec_obj.flavor.extra_specs


class BaseHostFilter:
    """Base of every filter; override ``host_passes``."""

    #: Run only for the first instance of a request for several.
    run_filter_once_per_request = False
    #: Run also when the request only checks a rebuild in place.
    RUN_ON_REBUILD = False
    #: Says where a server may be, however full its host is, and whatever befell it there.
    is_rule = True
    #: Written for the dict that stood for the request, and so given that.
    takes_dict = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        methods = (cls.filter_all, cls.host_passes)
        cls.takes_dict = any(
            "filter_properties" in inspect.signature(m).parameters for m in methods
        )

    def __init__(self, conf: Any = None) -> None:
        self.conf = conf

    @property
    def name(self) -> str:
        """The class name, which is what operators configure and read."""
        return type(self).__name__

    def run_filter_for_index(self, index: int) -> bool:
        """True when the filter runs for instance number *index* of the request."""
        return not (self.run_filter_once_per_request and index > 0)

    def is_bypassed(self, request: Any) -> bool:
        """True when it is not asked, because the request only checks a rebuild in place."""
        return not self.RUN_ON_REBUILD and request_is_rebuild(request)

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any] | None:
        """The hosts that pass, in order; None stops the whole chain."""
        if type(self)._filter_one is not BaseHostFilter._filter_one:
            return (host for host in filter_obj_list if self._filter_one(host, spec_obj))
        if self.is_bypassed(spec_obj):
            return filter_obj_list
        return (host for host in filter_obj_list if self.host_passes(host, spec_obj))

    def _filter_one(self, host_state: Any, spec_obj: Any) -> bool:
        if self.is_bypassed(spec_obj):
            return True
        return bool(self.host_passes(host_state, spec_obj))

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool | Refused:
        """True when *host_state* can take the request; False or Refused when it cannot."""
        raise NotImplementedError(f"{self.name} does not implement host_passes")

    def ask_each(self, hosts: Candidates, request: Any) -> Answers:
        """Ask about one host after the other; the code of a ``Refused`` is its sentence."""
        kind, base = type(self), BaseHostFilter
        passing: list[int] = []
        refused: dict[str, list[int]] = {}
        asks_all = (kind.filter_all, kind._filter_one) != (base.filter_all, base._filter_one)
        if self.is_bypassed(request) and (self.takes_dict or not asks_all):
            return hosts.rows.tolist(), {}
        if self.takes_dict:
            request = filter_properties_of(request)
        if asks_all:
            passed = self.filter_all(hosts.states(), request)
            passing = [] if passed is None else [state.row for state in passed]
            left = set(passing)
            gone = [row for row in hosts.rows.tolist() if row not in left]
            return passing, {UNSPECIFIED: gone} if gone else {}
        with hosts.asked_by(self.name) as states:
            for state in states:
                answer = self.host_passes(state, request)
                if answer:
                    passing.append(state.row)
                    continue
                code = UNSPECIFIED
                if isinstance(answer, Refused):
                    code = errors.quoted(answer.sentence)[: errors.MOST_CHARACTERS]
                if code not in refused and len(refused) >= MOST_SENTENCES:
                    code = UNSPECIFIED
                refused.setdefault(code, []).append(state.row)
        return passing, refused


class HostFilter(BaseHostFilter):
    """Base of the filters that ship here: conditions over columns."""

    #: Every reason that ``conditions`` may yield.
    reasons: ClassVar[tuple[Reason, ...]] = ()

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Yield (reason, mask of hosts that satisfy it) in order; a host passes where all hold.

        Yielding nothing passes every host.  Neither *hosts* nor *request* may be changed.
        """
        raise NotImplementedError(f"{self.name} does not implement conditions")

    def limits(self, host_state: HostState, request: Any) -> dict[str, Any]:
        """Limits that the chosen host's compute service must enforce, e.g. ``memory_mb``."""
        return {}

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """The same conditions on one host; writes its limits into it as Nova's filters do."""
        hosts = Candidates.alone(host_state)
        if not all(bool(mask.all()) for _reason, mask in self.conditions(hosts, spec_obj)):
            return False
        host_state.limits.update(self.limits(host_state, spec_obj))
        return True


def filter_properties_of(spec: objects.RequestSpec) -> dict[str, Any]:
    """The dict that stood for the request *spec*, in plain values, and the caller's context."""
    request_spec = spec.to_legacy_request_spec_dict()
    instance = request_spec["instance_properties"]
    image = request_spec["image"]
    instance["image_ref"] = image.get("id", "")
    known = image.get("properties", {})
    instance["os_type"] = known.get("os_type")
    # Under the names of old, where there are any, besides today's.
    old = {was: known[now] for was, now in LEGACY_NAMES.items() if now in known}
    image["properties"] = {**known, **old}
    properties = {
        "scheduler_hints": {},
        **spec.to_legacy_filter_properties_dict(),
        "request_spec": request_spec,
        "config_options": spec.config_options,
        "instance_type": request_spec["instance_type"],
        "project_id": instance.get("project_id"),
        "os_type": instance["os_type"],
        "pci_requests": instance.get("pci_requests"),
    }
    return {**objects.to_plain(properties), "context": oslo_context.get_current()}
