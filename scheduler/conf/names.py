"""Names in configuration files that nobody knows, and what may be meant (config page, section 12).

The library ignores an unknown name without a word.  A real ``nova.conf`` is full of options of
other services, so a name counts as unknown only where it is in a group of this project and Nova
never had it there, or where it looks very much like a name that is known.
"""

from __future__ import annotations

import collections
import contextlib
import difflib
import functools
import importlib.metadata
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg

from scheduler.conf import files
from scheduler.conf.files import DEFAULT, Setting

NAMESPACES: Final = (
    "nova-scheduler",
    "oslo.log",
    "oslo.reports",
    "oslo.service.service",
    "nova-scheduler.messaging",
    "nova-scheduler.former",
)
"""Of the options that are read; nearly all are in the sample configuration."""
BUS: Final = "oslo_messaging"
OF_THE_BUS: Final = ("nova-scheduler.messaging", "nova-scheduler.former")
_DATA: Final = pathlib.Path(__file__).with_name("names_of_nova.txt")
_GROUPS: Final = "groups"
#: How alike a name must be to be offered, and to be taken for a slip where anything may stand.
_OFFERED, _SLIP = 0.6, 0.85


@dataclass(frozen=True, slots=True)
class Unknown:
    """A setting that nothing reads, and what may be meant."""

    setting: Setting
    meant: str | None

    @property
    def told(self) -> str:
        """What is wrong with it, in a few words."""
        return "no such option" + (f"; did you mean {self.meant}?" if self.meant else "")


@functools.cache
def of_nova() -> Mapping[str, frozenset[str]]:
    """The names that Nova has, or had, in each group that is shared; ``groups``: all groups."""
    found: dict[str, set[str]] = {}
    group = ""
    for line in _DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            group = line[1:-1]
        elif line and not line.startswith("#"):
            found.setdefault(group, set()).update(line.split())
    return {group: frozenset(names) for group, names in found.items()}


def unknown(conf: cfg.ConfigOpts, own_groups: Iterable[str], paths: Iterable[str]) -> list[Unknown]:
    """The settings in *paths* that neither *conf* nor Nova knows; *own_groups* are ours."""
    known = registered(conf)
    own = set(own_groups) - {DEFAULT}
    found = []
    for setting in files.settings(paths):
        there = known.get(setting.group, frozenset())
        nova = of_nova().get(setting.group, frozenset())
        if setting.name in there or setting.name in nova:
            continue
        if setting.group in own:
            found.append(Unknown(setting, _meant(setting, known, own)))
        elif setting.group in known:
            [*alike] = difflib.get_close_matches(_name(setting), there, 1, _SLIP)
            if alike:
                found.append(Unknown(setting, alike[0]))
        elif setting.group not in of_nova()[_GROUPS]:
            [*alike] = difflib.get_close_matches(setting.group, own, 1, _SLIP)
            if alike:
                found.append(Unknown(setting, f"[{alike[0]}] {setting.name}"))
    return found


def registered(conf: cfg.ConfigOpts) -> dict[str, frozenset[str]]:
    """By group the names that *conf* reads, those of older releases included."""
    found: dict[str, set[str]] = {}
    for group, option in options(conf):
        found.setdefault(group, set()).add(option.dest)
        for old in option.deprecated_opts:
            name = (old.name or option.dest).replace("-", "_")
            found.setdefault(old.group or group, set()).add(name)
    return {group: frozenset(names) for group, names in found.items()}


def options(conf: cfg.ConfigOpts) -> list[tuple[str, cfg.Opt]]:
    """Every option that *conf* has, with its group.

    What is not in any library's list has a name only, and is secret if it is a password.
    """
    known = collections.ChainMap(*(dict(_of(namespace)) for namespace in NAMESPACES))
    return [
        (group, known.get((group, name)) or cfg.Opt(name, secret="password" in name))
        for group, name in _names(conf)
    ]


def option(group: str, name: str) -> cfg.Opt:
    """The option of that name in *group*; see :func:`options`.

    Only as many lists are read as it takes.  The list of the message bus takes 0.4 s to import:
    a program that has not loaded the library has registered none of its options either.
    """
    loaded = (each for each in NAMESPACES if each not in OF_THE_BUS or BUS in sys.modules)
    found = (_of(namespace).get((group, name)) for namespace in loaded)
    return next((each for each in found if each is not None), cfg.Opt(name))


def under_old_names(conf: cfg.ConfigOpts, paths: Iterable[str]) -> set[tuple[str, str]]:
    """Group and name of each setting in *paths* that has another name today."""
    found = options(conf)
    today = {(group, each.dest) for group, each in found}
    old = {
        (former.group or group, (former.name or each.dest).replace("-", "_"))
        for group, each in found
        for former in each.deprecated_opts
    }
    used = {(each.group, each.name.replace("-", "_")) for each in files.settings(paths)}
    return used & (old - today)


def _names(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str]]:
    for name in conf:
        value: Any = None
        with contextlib.suppress(cfg.Error, ValueError):  # a bad value, which others tell of
            value = conf[name]
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            yield from ((name, each) for each in value)
        else:
            yield DEFAULT, name


@functools.cache
def _of(namespace: str) -> Mapping[tuple[str, str], cfg.Opt]:
    """The options that this project or a library lists for the sample configuration."""
    return {
        (DEFAULT if group is None else str(group), each.dest): each
        for group, several in _groups(namespace)
        for each in several
    }


def listed(namespace: str) -> list[cfg.Opt]:
    """The options of ``[DEFAULT]`` that a library lists under *namespace*."""
    return [each for group, several in _groups(namespace) if group is None for each in several]


def _groups(namespace: str) -> Iterator[tuple[Any, list[cfg.Opt]]]:
    for entry in importlib.metadata.entry_points(group="oslo.config.opts", name=namespace):
        yield from entry.load()()


def _meant(setting: Setting, known: Mapping[str, frozenset[str]], own: set[str]) -> str | None:
    """The option that the setting is probably about: of this group, or one that has the name."""
    alike = difflib.get_close_matches(_name(setting), known[setting.group], 1, _SLIP)
    if alike:
        return alike[0]
    for group in sorted(own | {DEFAULT}):
        if _name(setting) in known.get(group, ()):
            return f"[{group}] {_name(setting)}"
    alike = difflib.get_close_matches(_name(setting), known[setting.group], 1, _OFFERED)
    return alike[0] if alike else None


def _name(setting: Setting) -> str:
    return setting.name.replace("-", "_").lower()
