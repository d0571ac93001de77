"""Base classes of weighers.

``BaseHostWeigher`` carries Nova's contract: a third-party weigher implements ``_weigh_object``
and is asked host by host.  Weighers that ship here derive from ``HostWeigher`` and compute the
raw values of all hosts at once.  Reference page scheduling, section 7.
"""

import inspect
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from scheduler import semantics
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

_COMPLAINT = "Could not decode '%s' weight multiplier: %s"


class BaseHostWeigher:
    """Base of every weigher; override ``_weigh_object`` and, if wanted, ``weight_multiplier``."""

    #: Declared bounds of the raw values: values outside are raised or lowered to them.
    minval: float | None = None
    maxval: float | None = None

    def __init__(self, conf: Any = None) -> None:
        self.conf = conf

    @property
    def name(self) -> str:
        """The class name, which is what operators configure and read."""
        return type(self).__name__

    def weight_multiplier(self, host_state: Any) -> float:
        """Factor applied to the normalised weight of *host_state*."""
        return self._weight_multiplier()

    def _weight_multiplier(self) -> float:
        """The factor of all hosts, as weighers of Havana have it."""
        return 1.0

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        """The raw value of one host; higher wins while the multiplier is positive."""
        raise NotImplementedError(f"{self.name} does not implement _weigh_object")

    def weigh_objects(self, weighed_obj_list: Iterable[Any], weight_properties: Any) -> Any:
        """The raw values of all hosts, each an ``obj`` with a ``weight``; seldom overridden."""
        return [self._weigh_object(each.obj, weight_properties) for each in weighed_obj_list]

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Raw values of all *hosts*, in order."""
        if type(self).weigh_objects is not BaseHostWeigher.weigh_objects:
            weighed = [SimpleNamespace(obj=each, weight=0.0) for each in hosts.states()]
            return np.array([*map(float, self.weigh_objects(weighed, request))], dtype=np.float64)
        with hosts.asked_by(self.name) as states:
            values = [float(self._weigh_object(state, request)) for state in states]
        return np.array(values, dtype=np.float64)

    def multipliers(self, hosts: Candidates) -> np.ndarray | float:
        """The multiplier of all *hosts*: one number, or one per host."""
        if not inspect.signature(self.weight_multiplier).parameters:  # as in Nova until Rocky
            return float(self.weight_multiplier())  # type: ignore[call-arg]
        with hosts.asked_by(self.name) as states:
            values = [self.weight_multiplier(state) for state in states]
        return np.array(values, dtype=np.float64)


class HostWeigher(BaseHostWeigher):
    """Base of the weighers that ship here: raw values over columns.

    The multiplier is the option ``multiplier_option`` of ``[filter_scheduler]``, read once;
    metadata of that name on a host's aggregates overrides it (scheduling page, section 7.4)
    where the semantics know that.
    """

    multiplier_option: ClassVar[str]

    #: The class whose ``raw`` and ``multipliers`` count.
    columnar: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        """Ask host by host where a class of a site overrides what Nova calls."""
        super().__init_subclass__()
        if {"raw", "multipliers"} & vars(cls).keys():
            cls.columnar = cls
        elif {"_weigh_object", "weigh_objects", "weight_multiplier"} & vars(cls).keys():
            for name in ("raw", "multipliers"):
                setattr(cls, name, getattr(BaseHostWeigher, name))

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.multiplier = self.configured_multiplier(conf)
        self.asks_aggregates = semantics.from_conf(conf).multiplier_per_aggregate

    def configured_multiplier(self, conf: Any) -> float:
        return float(conf.filter_scheduler[self.multiplier_option])

    def multipliers(self, hosts: Candidates) -> np.ndarray | float:
        """The option, or per host the smallest value found on its aggregates."""
        if not self.asks_aggregates:
            return self.multiplier
        if self.multiplier_option not in hosts.aggregate_keys:
            return self.multiplier
        return hosts.per_document("aggregates", self._of_aggregates, np.float64, key=self)

    def weight_multiplier(self, host_state: Any) -> float:
        return float(np.max(self.columnar.multipliers(self, Candidates.alone(host_state))))

    def _of_aggregates(self, aggregates: list[Any]) -> float:
        smallest = aggregate_metadata.smallest(
            aggregates, self.multiplier_option, float, _COMPLAINT
        )
        return self.multiplier if smallest is None else smallest

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        return float(self.columnar.raw(self, Candidates.alone(host_state), weight_properties)[0])


class ColumnWeigher(HostWeigher):
    """Base of the weighers whose raw values are a column of the host table."""

    column: ClassVar[str]

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        return getattr(hosts, self.column)
