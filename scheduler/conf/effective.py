"""The values in force and where each of them comes from, without secrets."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from oslo_utils import strutils

from scheduler.conf import names

MASK: Final = "***"
_SERVER: Final = re.compile(r"([^:@]*):.*@([^@]*)")
_CREDENTIALS_WITHIN: Final = re.compile(r"(://(?:[^/\s'\":@]*:)?)[^/\s'\"]*@")
_SENTENCE_END: Final = re.compile(r"(?<=\.)\s*(?=[A-Z])(?<!\b[A-Z]\.)")
_ORIGINS: Final = {
    cfg.Locations.opt_default: "default",
    cfg.Locations.set_default: "default of this program",
    cfg.Locations.set_override: "put right by this program",
    cfg.Locations.command_line: "command line",
    cfg.Locations.environment: "environment",
}


@dataclass(frozen=True, slots=True)
class Effective:
    """An option as ``GROUP.name``, its value as JSON can have it, and where that comes from."""

    name: str
    value: Any
    origin: str
    is_set: bool
    meaning: str
    #: Today's name and older ones, with their groups and without.
    names: frozenset[str]


def options(conf: cfg.ConfigOpts, paths: Iterable[str]) -> Iterator[Effective]:
    """Every option of *conf* by group and name; *paths* are the files it was filled from."""
    settings = list(names.settings(paths))
    for group, option in sorted(
        names.options(conf), key=lambda found: (found[0] != names.DEFAULT, found[0], found[1].dest)
    ):
        location = conf.get_location(option.dest, names.section(group))
        where = cfg.Locations.opt_default if location is None else location.location
        path = "" if location is None else str(location.detail)
        origin = _ORIGINS.get(where) or _place(group, option, settings, path)
        is_set = names.is_set(conf, group, option.dest)
        shown = masked_value(option, names.value(conf, group, option.dest))
        meaning = _meaning(option, is_own=names.is_own(group, option.dest))
        spelt = frozenset(
            each for its, name in names.spellings(group, option) for each in (f"{its}.{name}", name)
        )
        yield Effective(f"{group}.{option.dest}", shown, origin, is_set, meaning, spelt)


def _meaning(option: cfg.Opt, *, is_own: bool) -> str:
    """The help; of a library's, two sentences of what may be pages."""
    text = (option.help or "").strip()
    if is_own:
        return " ".join(text.split())
    sentences = _SENTENCE_END.split(" ".join(text.partition("\n\n")[0].split()))
    return " ".join(each for each in sentences[:2] if not each.endswith(":"))


def masked(text: str) -> str:
    """*text* without credentials in URLs, and without values after words like ``password``."""
    return _CREDENTIALS_WITHIN.sub(rf"\1{MASK}@", str(strutils.mask_password(text)))


def masked_value(option: cfg.Opt, value: Any) -> Any:
    """*value* without secrets: those of secret options, and passwords in URLs."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if option.secret and "://" not in str(value):
        return MASK
    if isinstance(value, list | tuple):
        return [masked_value(option, each) for each in value]
    if isinstance(value, dict):
        return {name: masked_value(option, each) for name, each in value.items()}
    return masked_url(str(value))


def masked_url(text: str) -> str:
    """*text* without the passwords of its URL, which may name several servers."""
    scheme, separator, rest = text.partition("://")
    place, slash, path = rest.rpartition("@")
    if not place:
        return str(strutils.mask_password(text))
    servers = f"{place}@{path.partition('/')[0]}".split(",")
    if all(_SERVER.fullmatch(each) for each in servers):
        place = ",".join(_SERVER.sub(rf"\1:{MASK}@\2", each) for each in servers)
        return str(strutils.mask_password(f"{scheme}{separator}{place}/{path.partition('/')[2]}"))
    user = place.partition(":")[0] + ":" if ":" in place else ""
    return str(strutils.mask_password(f"{scheme}{separator}{user}{MASK}{slash}{path}"))


def _place(group: str, option: cfg.Opt, settings: Sequence[names.Setting], path: str) -> str:
    """File and line, and the spelling where it is one of an older release."""
    spellings = names.spellings(group, option)
    for spelling in spellings:  # within one file the spelling of today wins
        there = [each for each in settings if (each.group, each.name) == spelling]
        there = [each for each in there if each.path == path] or there
        if there:
            as_spelt = "" if spelling == spellings[0] else f" as [{spelling[0]}] {spelling[1]}"
            return there[-1].place + as_spelt
    return path
