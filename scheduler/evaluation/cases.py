"""Reading cases: JSON lines, plain or compressed, from files or standard input."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from scheduler import errors

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario; *fleet* is the content of the database at its beginning."""

    name: str
    content: Mapping[str, Any]
    fleet: Mapping[str, Any]

    @property
    def suite(self) -> str:
        """What the case belongs to."""
        return str(self.content.get("suite") or self.name.partition("/")[0])

    @property
    def expected(self) -> Mapping[str, Any] | None:
        """What was recorded, if the case says so."""
        return self.content.get("expect")


class CaseSource:
    """The cases of several files, in order.  Iterate once."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.bytes_read = 0
        self._fleets: dict[str, Mapping[str, Any]] = {}

    @property
    def total_bytes(self) -> int | None:
        """The size of all files; None if it cannot be known."""
        if STANDARD_INPUT in self.paths:
            return None
        return sum(os.path.getsize(path) for path in self.paths if os.path.exists(path))

    def __iter__(self) -> Iterator[Case]:
        """Raises BadCase naming file and line of what is not a case."""
        for path in self.paths:
            try:
                yield from self._cases(path)
            except (OSError, EOFError, UnicodeDecodeError) as error:
                raise errors.BadCase(place=path, reason=str(error)) from error

    def _cases(self, path: str) -> Iterator[Case]:
        before = self.bytes_read
        with _opened(path) as raw, _text(raw) as lines:
            for number, line in enumerate(lines, start=1):
                case = self._case(line, f"{path}, line {number}")
                if raw is not sys.stdin.buffer:
                    self.bytes_read = before + raw.tell()
                if case is not None:
                    yield case

    def _case(self, line: str, place: str) -> Case | None:
        if not line.strip():
            return None
        try:
            content = json.loads(line)
        except ValueError as error:
            raise errors.BadCase(place=place, reason=f"not JSON: {error}") from error
        if not isinstance(content, dict):
            raise errors.BadCase(place=place, reason="not an object")
        if "fleet_id" in content:
            self._fleets[content["fleet_id"]] = content["fleet"]
            return None
        fleet = content.get("fleet") or self._fleets.get(content.get("fleet_ref", ""))
        missing = [name for name in ("name", "semantics", "now") if name not in content]
        if missing or fleet is None:
            lacks = ", ".join([*missing, *(["a fleet"] if fleet is None else [])])
            raise errors.BadCase(place=place, reason=f"not a case, it has no {lacks}")
        return Case(content["name"], content, fleet)


def _opened(path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if path == STANDARD_INPUT:
        return contextlib.nullcontext(sys.stdin.buffer)
    return open(path, "rb")


def _text(raw: IO[bytes]) -> IO[str]:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    if buffered.peek(2)[:2] == _GZIP_MAGIC:
        return gzip.open(buffered, "rt", encoding="utf-8")
    return io.TextIOWrapper(buffered, encoding="utf-8")
