"""A configuration as it would be with some options set otherwise; the one in force stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors
from scheduler.conf import default, filter_scheduler, names
from scheduler.conf import scheduler as scheduler_conf
from scheduler.conf.names import Name

_RATIOS: Final = tuple(
    f"{initial}{resource}_allocation_ratio"
    for initial in ("", "initial_")
    for resource in ("cpu", "ram", "disk")
)
_OF_DEFAULT: Final = ("service_down_time", "default_availability_zone", *_RATIOS)
_OF_GROUPS: Final[Mapping[str, Iterable[cfg.Opt]]] = {
    "filter_scheduler": filter_scheduler.OPTIONS,
    "metrics": filter_scheduler.METRICS_OPTIONS,
    "compute": default.COMPUTE_OPTIONS,
    "scheduler": [o for o in scheduler_conf.OPTIONS if o.name in ("max_attempts", "semantics")],
    names.DEFAULT: [o for o in default.OPTIONS if o.name in _OF_DEFAULT],
}
#: Options that a decision reads, and that can therefore be tried with another value.
OPTIONS: Final[Mapping[Name, cfg.Opt]] = {
    (group, each.dest): each for group, several in _OF_GROUPS.items() for each in several
}


class Overlay:
    """*options*, a configuration or a group of it, with some *values* in their place."""

    def __init__(self, options: Any, values: Mapping[str, Any]) -> None:
        self._options = options
        self._values = values

    @classmethod
    def from_values(cls, conf: Any, values: Mapping[Name, Any]) -> Overlay:
        """*conf* with other *values*, by group and name."""
        groups: dict[str, dict[str, Any]] = {}
        for (group, name), value in values.items():
            groups.setdefault(group, {})[name] = value
        own = groups.pop(names.DEFAULT, {})
        return cls(conf, own | {group: cls(conf[group], of) for group, of in groups.items()})

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values else getattr(self._options, name)


def values_of(settings: Sequence[str]) -> dict[Name, Any]:
    """Values of texts ``[group.]option=value``; InvalidRequest for what no decision can read."""
    found = {}
    for text in settings:
        spelt, separator, value = text.partition("=")
        argument = f"--set {spelt.strip()}"
        if not separator:
            raise errors.InvalidRequest(field=argument, reason="no value: give option=value")
        name = _name_of(spelt.strip(), argument)
        parse = OPTIONS[name].type
        try:
            is_list = OPTIONS[name].multi
            parts = [parse(part.strip()) for part in (value.split(",") if is_list else [value])]
        except ValueError as error:
            raise errors.InvalidRequest(field=argument, reason=str(error)) from error
        found[name] = parts if is_list else parts[0]
    return found


def _name_of(spelt: str, argument: str) -> Name:
    """Group and name of what is spelt so, also as older releases did."""
    group, _dot, name = spelt.rpartition(".")
    spellings: dict[str, set[Name]] = {}
    for today, option in OPTIONS.items():
        for _group, spelling in names.spellings(today[0], option):
            spellings.setdefault(spelling, set()).add(today)
    fitting = sorted(each for each in spellings.get(name, ()) if group in ("", each[0]))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        several = " or ".join(f"{group}.{name}" for group, name in fitting)
        raise errors.InvalidRequest(field=argument, reason=f"which one: {several}?")
    reason = f"no decision reads an option of this name{errors.did_you_mean(name, spellings)}"
    raise errors.InvalidRequest(field=argument, reason=reason)


def chain_of(
    conf: Any, option: str, known: Iterable[str], enable: Sequence[str], disable: Sequence[str]
) -> dict[Name, Any]:
    """The filters without *disable*, then *enable*; InvalidRequest for names not among them."""
    chain = list(conf.filter_scheduler[option])
    for each in disable:
        if each not in chain:
            reason = f"not one of the enabled filters{errors.did_you_mean(each, chain)}"
            raise errors.InvalidRequest(field=f"--disable {each}", reason=reason)
        chain = [name for name in chain if name != each]
    known = {*known, *chain}
    for each in enable:
        if each not in known:
            reason = f"no filter of this name is available{errors.did_you_mean(each, known)}"
            raise errors.InvalidRequest(field=f"--enable {each}", reason=reason)
        if each not in chain:
            chain.append(each)
    return {("filter_scheduler", option): chain}
