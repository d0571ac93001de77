"""Options by group and name: those registered, those in files, and those that nobody knows.

The library ignores an unknown name without a word.  A real ``nova.conf`` is full of options of
other services, so a name counts as unknown only where it is in a group of this project and Nova
never had it there, or where it looks very much like a known name (config page, section 12).
"""

import contextlib
import functools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors, plugins

Name = tuple[str, str]
"""Group and name of an option."""

DEFAULT: Final = "DEFAULT"
OWN: Final = "nova-scheduler"
LIBRARIES: Final = {
    OWN: "scheduler",
    "oslo.log": "oslo_log",
    "oslo.reports": "oslo_reports",
    "oslo.service.service": "oslo_service.service",
    "nova-scheduler.messaging": "oslo_messaging",
    "nova-scheduler.former": "oslo_messaging",
}
"""By the name of entry points that list options which are read: their library.  A program that has
not loaded it has registered none of them, and some take half a second to load."""
_NAMES_OF_NOVA: Final = pathlib.Path(__file__).with_name("names_of_nova.txt")
_GROUPS: Final = "groups"
#: Similarity from which a name is suggested, and from which it counts as a slip anywhere.
_SUGGESTED, _SLIP = 0.6, 0.85


@dataclass(frozen=True, slots=True)
class Setting:
    """One assignment in a file: group and name as the library reads them, and its place."""

    group: str
    name: str
    path: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def plain_name(self) -> str:
        return self.name.replace("-", "_").lower()


def section(group: str) -> str | None:
    return None if group == DEFAULT else group


def value(conf: cfg.ConfigOpts, group: str, name: str) -> Any:
    return conf[name] if group == DEFAULT else conf[group][name]


def is_set(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    """True for an option whose value is not a default."""
    location = conf.get_location(name, section(group))
    defaults = (cfg.Locations.opt_default, cfg.Locations.set_default)
    return location is not None and location.location not in defaults


def registered(conf: cfg.ConfigOpts) -> list[Name]:
    """Every option that *conf* has; its value may be bad."""
    found: list[Name] = []
    for name in conf:
        group: Any = None
        with contextlib.suppress(cfg.Error, ValueError):
            group = conf[name]
        is_group = isinstance(group, cfg.ConfigOpts.GroupAttr)
        found += [(name, each) for each in group] if is_group else [(DEFAULT, name)]
    return found


def options(conf: cfg.ConfigOpts) -> list[tuple[str, cfg.Opt]]:
    """Every option that *conf* has, with its group.

    What is not in any library's list has a name only, and is secret if that says so.
    """
    return [(group, option(group, name)) for group, name in registered(conf)]


def option(group: str, name: str) -> cfg.Opt:
    """The option of that name in *group*; see :func:`options`."""
    for namespace, library in LIBRARIES.items():
        if library in sys.modules and (found := _listed(namespace).get((group, name))) is not None:
            return found
    return cfg.Opt(name, secret=any(word in name for word in ("password", "secret", "token")))


def is_own(group: str, name: str) -> bool:
    """True for an option of this project, False for one of a library."""
    return (group, name) in _listed(OWN)


def spellings(group: str, option: cfg.Opt) -> list[Name]:
    """The names by which files may set *option*: today's, then those of older releases."""
    return [
        (group, option.dest),
        *(
            (old.group or group, (old.name or option.dest).replace("-", "_"))
            for old in option.deprecated_opts
        ),
    ]


def known(conf: cfg.ConfigOpts) -> dict[str, set[str]]:
    """The names that *conf* reads, by group; those of older releases included."""
    found: dict[str, set[str]] = {}
    for group, each in options(conf):
        for spelt_group, name in spellings(group, each):
            found.setdefault(spelt_group, set()).add(name)
    return found


def under_old_names(conf: cfg.ConfigOpts, paths: Iterable[str]) -> set[Name]:
    """Group and name of each setting in *paths* that has another name today."""
    today, old = set(), set()
    for group, each in options(conf):
        first, *others = spellings(group, each)
        today.add(first)
        old.update(others)
    used = {(each.group, each.name.replace("-", "_")) for each in settings(paths)}
    return used & (old - today)


def settings(paths: Iterable[str]) -> Iterator[Setting]:
    """Every assignment in the files *paths*, which the library has read without an error."""
    for path in paths:
        group = DEFAULT
        text = pathlib.Path(path).expanduser().read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith((" ", "\t", "#", ";")):
                continue
            if line.startswith("["):
                name = line.rstrip()[1:-1]
                group = DEFAULT if name.upper() == DEFAULT else name.lower()
                continue
            ends = [end for end in (line.find("="), line.find(":")) if end >= 0]
            yield Setting(group, line[: min(ends, default=None)].strip(), path, number)


def unknown(conf: cfg.ConfigOpts, paths: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Options in *paths* that neither *conf* nor Nova knows: what to say of each, and its place."""
    here, nova = known(conf), names_of_nova()
    own = {group for group, _name in _listed(OWN)} - {DEFAULT}
    for setting in settings(paths):
        there = here.get(setting.group, set())
        if setting.name in there or setting.name in nova.get(setting.group, ()):
            continue
        meant: str | None = None
        if setting.group in own:
            meant = _meant(setting, here, own)
        elif setting.group in here:
            meant = errors.nearest(setting.plain_name, there, _SLIP)
        elif setting.group not in nova[_GROUPS]:
            group = errors.nearest(setting.group, own, _SLIP)
            meant = group and f"[{group}] {setting.name}"
        if meant or setting.group in own:
            reason = "no such option" + (f"; did you mean {meant}?" if meant else "")
            yield f"[{setting.group}] {setting.name}", reason, setting.place


def _meant(setting: Setting, here: Mapping[str, set[str]], own: set[str]) -> str | None:
    """The option that the setting is probably about: of this group, or one that has the name."""
    name = setting.plain_name
    groups = [group for group in sorted(own | {DEFAULT}) if name in here.get(group, ())]
    return (
        errors.nearest(name, here[setting.group], _SLIP)
        or next((f"[{group}] {name}" for group in groups), None)
        or errors.nearest(name, here[setting.group], _SUGGESTED)
    )


@functools.cache
def names_of_nova() -> Mapping[str, set[str]]:
    """The names that Nova has, or had, in each group that is shared; ``groups``: all groups."""
    found: dict[str, set[str]] = {}
    group = ""
    for line in _NAMES_OF_NOVA.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            group = line[1:-1]
        elif line and not line.startswith("#"):
            found.setdefault(group, set()).update(line.split())
    return found


@functools.cache
def _listed(namespace: str) -> Mapping[Name, cfg.Opt]:
    """The options that this project or a library lists for the sample configuration."""
    return {
        (DEFAULT if group is None else getattr(group, "name", str(group)), each.dest): each
        for entry in plugins.installed().select(group="oslo.config.opts", name=namespace)
        for group, several in entry.load()()
        for each in several
    }


def listed_defaults(namespace: str) -> list[cfg.Opt]:
    """The options of ``[DEFAULT]`` that a library lists under *namespace*."""
    return [each for (group, _), each in _listed(namespace).items() if group == DEFAULT]
