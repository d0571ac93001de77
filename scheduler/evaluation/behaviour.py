"""The two behaviours that a case can be labelled with, and what follows from each."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from scheduler import conf as options
from scheduler import errors, numa
from scheduler.conf import check
from scheduler.evaluation.cases import Case
from scheduler.hosts.books import Books
from scheduler.hosts.books_of_nova import NewtonBooks, PlacementBooks
from scheduler.hosts.table import HostTable
from scheduler.numa import NumaSemantics

#: Configurations kept; neighbouring cases often share theirs.
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a release decides, who keeps its books, and whether its callers name the instances."""

    name: str
    semantics: str
    numa: NumaSemantics
    books: Callable[[HostTable], Books]
    names_instances: bool

    def conf(self, case: Case) -> cfg.ConfigOpts:
        """The configuration of *case*; raises an error that names the option it cannot use."""
        config = case.content.get("config", {})
        return _conf(self.semantics, case.content.get("driver"), json.dumps(config, sort_keys=True))


NEWTON = Behaviour("newton", "newton", numa.NEWTON, NewtonBooks, names_instances=False)
CURRENT = Behaviour("2026", "current", numa.CURRENT, PlacementBooks, names_instances=True)

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


@functools.lru_cache(maxsize=_KEPT)
def _conf(semantics: str, driver: str | None, config: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    options.register_all(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_default("semantics", semantics, group="scheduler")
    if driver is not None:
        conf.set_default("driver", driver, group="scheduler")
    for group, values in json.loads(config).items():
        for name, value in values.items():
            _set(conf, group, name, value)
    check.validate(conf)
    return conf


def _set(conf: cfg.ConfigOpts, group: str, name: str, value: Any) -> None:
    try:
        conf.set_default(name, value, group=None if group == "DEFAULT" else group)
    except (cfg.Error, ValueError) as error:
        raise errors.ConfigurationError(option=f"[{group}] {name}", reason=str(error)) from error
