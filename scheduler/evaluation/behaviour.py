"""The two behaviours that a case can be labelled with, and the configuration of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from scheduler import conf as options
from scheduler import errors, numa
from scheduler.conf import check
from scheduler.evaluation.cases import Case
from scheduler.hosts.reservations import NewtonReservations, PlacementReservations, Reservations
from scheduler.hosts.table import HostTable
from scheduler.numa import NumaSemantics


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A release's rules: semantics, reservations, and if its callers name instances."""

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


class Configuration:
    """One set of options, given anew to every case, as making one takes longer than deciding.

    What a case leaves out has its default.
    """

    def __init__(self) -> None:
        self._conf = cfg.ConfigOpts()
        options.register_all(self._conf)
        self._conf([], default_config_files=[], default_config_dirs=[])
        self._given: list[tuple[str, str | None]] = []

    def for_case(self, case: Case, behaviour: Behaviour) -> cfg.ConfigOpts:
        """The configuration of *case*, until the next call.

        Raises an error that names the option that cannot be used.
        """
        while self._given:
            name, group = self._given.pop()
            self._conf.clear_default(name, group=group)
        self._give("scheduler", "semantics", behaviour.semantics)
        if "driver" in case.content:
            self._give("scheduler", "driver", case.content["driver"])
        for group, values in case.content.get("config", {}).items():
            for name, value in values.items():
                self._give(group, name, value)
        check.validate(self._conf)
        return self._conf

    def _give(self, group: str, name: str, value: Any) -> None:
        section = None if group == "DEFAULT" else group
        try:
            self._conf.set_default(name, value, group=section)
        except (cfg.Error, ValueError) as error:
            raise errors.ConfigurationError(
                option=f"[{group}] {name}", reason=str(error)
            ) from error
        self._given.append((name, section))
