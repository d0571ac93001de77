"""A configuration as it would be with some options set otherwise; the one in force stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors
from scheduler.conf import default, filter_scheduler
from scheduler.conf import scheduler as scheduler_conf

Name = tuple[str, str]
"""Group and name of an option."""
DEFAULT: Final = "DEFAULT"

_OF_DEFAULT: Final = frozenset(
    {
        "service_down_time",
        "default_availability_zone",
        *(
            f"{initial}{resource}_allocation_ratio"
            for initial in ("", "initial_")
            for resource in ("cpu", "ram", "disk")
        ),
    }
)


def _known() -> dict[Name, cfg.Opt]:
    """Options that a decision reads, and that can therefore be tried with another value."""
    of_group: dict[str, Iterable[cfg.Opt]] = {
        "filter_scheduler": filter_scheduler.OPTIONS,
        "metrics": filter_scheduler.METRICS_OPTIONS,
        "compute": default.COMPUTE_OPTIONS,
        "scheduler": [o for o in scheduler_conf.OPTIONS if o.name in ("max_attempts", "semantics")],
        DEFAULT: [o for o in default.OPTIONS if o.name in _OF_DEFAULT],
    }
    return {(group, each.dest): each for group, several in of_group.items() for each in several}


OPTIONS: Final[Mapping[Name, cfg.Opt]] = _known()


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
        own = groups.pop(DEFAULT, {})
        return cls(conf, own | {group: cls(conf[group], of) for group, of in groups.items()})

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values else getattr(self._options, name)

    def __contains__(self, name: str) -> bool:
        return name in self._options

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)


def values_of(settings: Sequence[str]) -> dict[Name, Any]:
    """The values that texts of the form ``option=value`` or ``group.option=value`` give.

    Raises InvalidRequest naming the argument for an option that no decision reads, and for a value
    that it cannot have.
    """
    found = {}
    for text in settings:
        spelt, separator, value = str(text).partition("=")
        argument = f"--set {spelt.strip()}"
        if not separator:
            raise errors.InvalidRequest(field=argument, reason="no value: give option=value")
        name = _name_of(spelt.strip(), argument)
        found[name] = _parsed(OPTIONS[name], value.strip(), argument)
    return found


def _name_of(spelt: str, argument: str) -> Name:
    """Group and name of what is spelt so, also as older releases did."""
    group, _dot, name = spelt.rpartition(".")
    spellings = _spellings()
    fitting = sorted({each for each in spellings.get(name, ()) if group in ("", each[0])})
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        several = " or ".join(f"{group}.{name}" for group, name in fitting)
        raise errors.InvalidRequest(field=argument, reason=f"which one: {several}?")
    reason = f"no decision reads an option of this name{errors.did_you_mean(name, spellings)}"
    raise errors.InvalidRequest(field=argument, reason=reason)


def _spellings() -> dict[str, list[Name]]:
    found: dict[str, list[Name]] = {}
    for name, option in OPTIONS.items():
        for spelt in {name[1], *(old.name for old in option.deprecated_opts if old.name)}:
            found.setdefault(spelt, []).append(name)
    return found


def _parsed(option: cfg.Opt, text: str, argument: str) -> Any:
    try:
        if option.multi:
            return [option.type(part.strip()) for part in text.split(",")]
        return option.type(text)
    except ValueError as error:
        raise errors.InvalidRequest(field=argument, reason=str(error)) from error


def chain_of(
    conf: Any, option: str, known: Iterable[str], enable: Sequence[str], disable: Sequence[str]
) -> dict[Name, Any]:
    """The list of filters, [filter_scheduler] *option*, with some more or less.

    Those that are enabled come last, in the order given.  Raises InvalidRequest for a filter that
    is not among the *known* or not enabled.
    """
    names = list(conf.filter_scheduler[option])
    for each in disable:
        if each not in names:
            reason = f"not one of the enabled filters{errors.did_you_mean(each, names)}"
            raise errors.InvalidRequest(field=f"--disable {each}", reason=reason)
        names = [name for name in names if name != each]
    known = set(known) | set(names)
    for each in enable:
        if each not in known:
            reason = f"no filter of this name is available{errors.did_you_mean(each, known)}"
            raise errors.InvalidRequest(field=f"--enable {each}", reason=reason)
        if each not in names:
            names.append(each)
    return {("filter_scheduler", option): names}
