"""Cases as JSON lines, plain or compressed, and the behaviours that they are labelled with."""

import functools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fileinput import FileInput, hook_compressed
from typing import Any

from scheduler import errors
from scheduler.conf import mistakes
from scheduler.hosts.reservations import NewtonReservations, Reservations
from scheduler.hosts.table import HostTable

STANDARD_INPUT = "-"

Case = Mapping[str, Any]
"""One scenario, with the keys of the format; ``fleet`` is the database at its beginning."""
Answer = dict[str, Any]
"""Decision on a case, with the keys of the format's ``expect``."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A release's rules: semantics, reservations, and if its callers name instances."""

    name: str
    semantics: str
    reservations: Callable[[HostTable], Reservations]
    names_instances: bool


NEWTON = Behaviour("newton", "newton", NewtonReservations, names_instances=False)
#: Beside Placement none outlives its request: the next one starts from the rows.
_PASSING = functools.partial(Reservations, expiry_seconds=float("-inf"))
CURRENT = Behaviour("2026", "current", _PASSING, names_instances=True)

#: By the label of a case, who decides it; the answer of the first is written.
OF_LABEL: Mapping[str, tuple[Behaviour, ...]] = {
    "all": (CURRENT, NEWTON),
    NEWTON.name: (NEWTON,),
    CURRENT.name: (CURRENT,),
}


def read_cases(paths: Sequence[str]) -> Iterator[Case]:
    """The cases of several files, ``-`` is standard input; BadCase names file and line.

    Files whose names end in ``.gz`` are compressed.
    """
    fleets: dict[str, Any] = {}
    with FileInput(paths, openhook=hook_compressed, encoding="utf-8") as lines:
        try:
            for line in lines:
                place = f"{lines.filename()}, line {lines.filelineno()}"
                if line.strip() and (case := _case(line, place, fleets)):
                    yield case
        except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or mistakes.plain(str(error))
            raise errors.BadCase(place=lines.filename(), reason=reason) from error


def _case(line: str, place: str, fleets: dict[str, Any]) -> Case | None:
    """The case in a *line*; None for a fleet of several cases, which is added to *fleets*."""
    try:
        content = json.loads(line)
    except ValueError as error:
        raise errors.BadCase(place=place, reason=f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise errors.BadCase(place=place, reason="not an object")
    if "fleet_id" in content:
        fleets[str(content["fleet_id"])] = content.get("fleet")
        return None
    fleet = content.get("fleet") or fleets.get(str(content.get("fleet_ref")))
    missing = [name for name in ("name", "semantics", "now") if name not in content]
    if missing or fleet is None:
        lacks = ", ".join([*missing, *(["a fleet"] if fleet is None else [])])
        raise errors.BadCase(place=place, reason=f"not a case, it has no {lacks}")
    if (label := str(content["semantics"])) not in OF_LABEL:
        reason = f"semantics {label!r} is none of {', '.join(OF_LABEL)}"
        raise errors.BadCase(place=place, reason=reason)
    suite = str(content["name"]).partition("/")[0]
    return {"suite": suite, **content, "fleet": fleet}
