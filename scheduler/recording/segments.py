"""Segments: gzip files of JSON lines, each with a header and readable on its own.

A line is one decision: what has changed of the hosts since the line before, the request, and the
answer.  The first line of a segment has all hosts.  After a gap a new segment begins.
"""

import contextlib
import datetime
import gzip
import json
import math
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scheduler import errors
from scheduler.numa import HostTopology
from scheduler.pci import Pools

FORMAT: Final = "nova-scheduler recording"
VERSION: Final = 1
SUFFIX: Final = ".jsonl.gz"
#: A segment is over at so much of what the directory may hold.
SEGMENT_SHARE: Final = 16
Line = dict[str, Any]
#: Names that every line has.
NAMES: Final = frozenset(
    ("now", "full", "gone", "rows", "contents", "services", "instances", "heard")
    + ("request_id", "seed", "spec", "uuids", "alternates", "answer")
)


class Writer:
    """Writes the segments of one worker, and deletes old ones of all.  Called by one thread."""

    def __init__(self, folder: Path, worker: str, keep_hours: int, max_megabytes: int) -> None:
        self._folder = folder
        self._worker = worker
        self._keep_seconds = keep_hours * 3600.0
        self._most_bytes = max_megabytes * 2**20
        #: None where no segment has begun.
        self.file: gzip.GzipFile | None = None
        self._path = folder
        self._number = 0
        self._is_on_disk = True

    def write(self, lines: Iterable[Line]) -> bool:
        """Write *lines*; all hosts begin a segment.  True if one is due.  Raises OSError."""
        texts: list[bytes] = []
        for line in lines:
            if line["full"]:
                self._flush(texts)
                self._begin()
            texts.append(_text(line))
        return self._flush(texts)

    def _flush(self, texts: list[bytes]) -> bool:
        if self.file is None:
            return False
        self.file.write(b"".join(texts))
        texts.clear()
        self.file.flush()
        self._is_on_disk = True
        return self._path.stat().st_size > self._most_bytes // SEGMENT_SHARE

    def close(self) -> None:
        """End the segment; raises OSError."""
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def give_up(self) -> None:
        """End a segment that failed; one that was never whole on disk goes.  Raises OSError."""
        try:
            self.close()
        finally:
            if not self._is_on_disk:
                self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        self.close()
        self._purge()
        self._number += 1
        began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._path = self._folder / f"{self._worker}-{began}-{self._number:04}{SUFFIX}"
        self.file, self._is_on_disk = _begun(self._path, self._worker), False

    def _purge(self) -> None:
        now, left = time.time(), self._most_bytes
        files = [(each.stat(), each) for each in self._folder.glob(f"*{SUFFIX}")]
        for stat, path in sorted(files, key=lambda each: -each[0].st_mtime):
            left -= stat.st_size
            if left < 0 or now - stat.st_mtime > self._keep_seconds:
                path.unlink(missing_ok=True)


def _begun(path: Path, worker: str) -> gzip.GzipFile:
    """A new file at *path* with its header; raises OSError."""
    file = gzip.GzipFile(path, "xb", compresslevel=1)
    path.chmod(0o600)
    file.write(_text({"format": FORMAT, "version": VERSION, "worker": worker}))
    return file


def save(path: Path, lines: Iterable[Line]) -> int:
    """Write a segment of *lines*, each of which names its worker; how many.  Raises OSError."""
    number, file = 0, _begun(path, "several")
    try:
        with file:
            for number, line in enumerate(lines, 1):  # noqa: B007
                file.write(_text(line))
    except BaseException:
        path.unlink()  # half a history would look like a whole one
        raise
    return number


def names_of(line: Line) -> list[str]:
    """The uuids of the servers, if the request names all of them."""
    if line["uuids"]:
        return list(line["uuids"])
    data = line["spec"]["nova_object.data"]
    own = data.get("instance_uuid")
    return [own] if own and data.get("num_instances", 1) == 1 else []


def moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    if isinstance(value, HostTopology | Pools):
        return value.to_text()
    if isinstance(value, frozenset):
        return sorted(value)
    return value.obj_to_primitive()


_encode: Final = json.JSONEncoder(
    default=_plain, separators=(",", ":"), check_circular=False
).encode


def _text(line: Mapping[str, Any]) -> bytes:
    return f"{_encode(line)}\n".encode("ascii")


class Segment:
    """One file to be read; lenient *faults* take what can be read of a truncated one."""

    def __init__(self, path: Path, faults: errors.Faults | None = None) -> None:
        self.path = path
        self._faults = faults or errors.Faults()
        #: The line that was given last, and the first that is none.
        self._number, self._end = 1, math.inf

    def __iter__(self) -> Iterator[tuple[str, Line]]:
        """Place and content of each line after the header; UnusableInput names what is wrong.

        Each line names its ``worker``.
        """
        self._number, last = 1, dict[str, float]()
        try:
            with gzip.open(self.path, "rt", encoding="utf-8", errors="surrogatepass") as file:
                header = self._checked(json.loads(file.readline() or "null"))
                self._number = 2  # so that it is right where the next line cannot be read
                for text in file:
                    if self._number >= self._end:
                        break
                    line = {"worker": header["worker"], **json.loads(text)}
                    if missing := NAMES - line.keys():
                        raise ValueError(f"{min(missing)} is missing")
                    back = last.get(line["worker"], -math.inf) - line["now"]
                    if back > 0 and not line["full"]:
                        raise ValueError(f"the clock went back by {back:g} s")
                    last[line["worker"]] = line["now"]
                    yield f"{self.path}, line {self._number}", line
                    self._number += 1
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
            self._faults.add(self.path, self._number, error)

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """End the file before the line given last if it is of no use: later ones build on it."""
        try:
            yield
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            self._end = self._number
            self._faults.add(self.path, self._number, f"not a line of a recording: {error!r}")

    def _checked(self, header: Any) -> Line:
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError("not a recording")
        if not isinstance(header["version"], int) or header["version"] > VERSION:
            raise ValueError(
                f"version {header['version']} is newer than {VERSION}, the latest known"
            )
        return header
