"""The two behaviours that a case can be labelled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler import errors, numa
from scheduler.evaluation.cases import Case
from scheduler.hosts.reservations import Reservations
from scheduler.hosts.reservations_of_nova import NewtonReservations, PlacementReservations
from scheduler.hosts.table import HostTable
from scheduler.numa import NumaSemantics


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a release decides and keeps reservations, and whether its callers name instances."""

    name: str
    semantics: str
    numa: NumaSemantics
    reservations: Callable[[HostTable], Reservations]
    names_instances: bool


NEWTON = Behaviour("newton", "newton", numa.NEWTON, NewtonReservations, names_instances=False)
CURRENT = Behaviour("2026", "current", numa.CURRENT, PlacementReservations, names_instances=True)

#: The label of a case that both decide alike.
ALL = "all"
#: By label, the behaviour whose answer is written first.
OF_LABEL: Mapping[str, tuple[Behaviour, ...]] = {
    ALL: (CURRENT, NEWTON),
    NEWTON.name: (NEWTON,),
    CURRENT.name: (CURRENT,),
}


def of_case(case: Case, wanted: str = ALL) -> tuple[Behaviour, ...]:
    """The behaviours to decide *case* under, none where it is not labelled with the *wanted* one.

    Raises BadCase when the label is none of those known.
    """
    label = case.content["semantics"]
    if label not in OF_LABEL:
        known = ", ".join(OF_LABEL)
        raise errors.BadCase(place=case.name, reason=f"semantics {label!r} is none of {known}")
    return tuple(each for each in OF_LABEL[label] if wanted in (ALL, each.name))
