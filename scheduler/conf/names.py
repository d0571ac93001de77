"""Names in configuration files that nobody knows, and what may be meant (config page, section 12).

The library ignores an unknown name without a word.  A real ``nova.conf`` is full of options of
other services, so a name counts as unknown only where it is in a group of this project and Nova
never had it there, or where it looks very much like a name that is known.
"""

from __future__ import annotations

import difflib
import functools
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from oslo_config import cfg

from scheduler.conf import files
from scheduler.conf.files import DEFAULT, Setting

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
    """Every option that *conf* has, with its group."""
    infos = conf._all_opt_infos()  # the library shows names and values only
    return [(DEFAULT if group is None else group.name, info["opt"]) for info, group in infos]


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
