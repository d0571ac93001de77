"""``recording``: files of recorded decisions, looked at, decided again, merged, without names."""

import contextlib
import dataclasses
import gzip
import itertools
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from scheduler import errors, exit_codes
from scheduler.cli import command
from scheduler.cli.command import Found, action, argument
from scheduler.recording import merging
from scheduler.recording.arrivals import is_recording
from scheduler.recording.checking import Recheck, naming
from scheduler.recording.segments import SUFFIX, Line, Segment, moment, save

_FILES = (
    argument("files", metavar="FILE", nargs="+", type=Path, help="segments of a recording"),
    argument("--lenient", action="store_true", help="take what can be read of truncated files"),
)
_OUTPUT: Final = argument(
    *("-o", "--output"), metavar="FILE", type=Path, required=True, help=f"new file, *{SUFFIX}"
)
_WRITTEN: Final = "{decisions} decisions are in {file}."


@action(
    command.List,
    *_FILES,
    columns=("File", "Begin", "End", "Decisions", "Refused", "Hosts", "Gaps"),
    nothing="There is no file of a recording.",
    needs_tables=False,
)
def show(self: Any, args: Any) -> list[list[Any]]:
    """List files of a recording: when they were written, and what is in them."""
    segments = _segments(args)
    found: list[list[Any]] = [[str(each.path), None, None, 0, 0, 0, 0] for each in segments]
    pairs = zip(found, segments, strict=True)
    lines = ((row, segment, *each) for row, segment in pairs for each in segment)
    for row, segment, number, line in _tracked(lines, "Reading", segments):
        with naming(segment, number):
            row[2] = moment(line["now"])
            row[1] = row[1] or row[2]
            row[3] += 1
            row[4] += line["answer"] == []
            row[5] = len(line["rows"]) if line["full"] else row[5]
            row[6] += bool(line.get("gap"))
    _warn(self, segments)
    return found


def _segments(args: Any) -> list[Segment]:
    return [Segment(path, lenient=args.lenient) for path in args.files]


def _tracked(lines: Iterable[Found], what: str, segments: Sequence[Segment]) -> Iterable[Found]:
    return command.tracked(lines, what, sum(_length(each.path) for each in segments))


def _length(path: Path) -> int:
    """Number of decisions in a file, as far as it can be read."""
    number = 0
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        for number, _line in enumerate(file):  # noqa: B007
            pass
    return number


def _warn(self: Any, segments: Sequence[Segment]) -> None:
    """Say once what could not be read, however often the files were read."""
    for note in dict.fromkeys(itertools.chain.from_iterable(each.notes for each in segments)):
        self.tell(f"warning: {note}")


def _saved(path: Path, lines: Iterable[Line]) -> dict[str, Any]:
    if not is_recording(path):
        raise errors.InvalidRequest(field="--output", reason=f"the name must end in {SUFFIX}")
    with errors.as_invalid("--output", OSError):
        return {"decisions": save(path, lines), "file": str(path)}


@action(command.Text, *_FILES, _OUTPUT, needs_tables=False, words=_WRITTEN)
def merge(self: Any, args: Any) -> dict[str, Any]:
    """Merge files of several workers into one history: claims before what depends on them."""
    segments = _segments(args)
    found = _saved(args.output, _tracked(merging.merged(segments), "Merging", segments))
    _warn(self, segments)
    return found


@action(command.Text, *_FILES, _OUTPUT, needs_tables=False, words=_WRITTEN)
def anonymize(self: Any, args: Any) -> dict[str, Any]:
    """Replace names of hosts, projects, users, servers and groups; several files are merged."""
    segments, names = _segments(args), merging.Anonymous()
    several = itertools.chain.from_iterable(map(names.learn, segments))
    for _line in _tracked(several, "Reading names", segments):
        pass
    lines = map(names.line, merging.merged(segments))
    found = _saved(args.output, _tracked(lines, "Replacing names", segments))
    _warn(self, segments)
    return found


class Check(command.Text):
    """Decide recorded requests again on the recorded state, and compare with their answers.

    The status is 1 if one of them is answered otherwise.
    """

    needs_tables = False
    arguments = _FILES

    def act(self, args: Any) -> dict[str, Any]:
        recheck, segments = Recheck(), _segments(args)
        several = itertools.chain.from_iterable(map(recheck.play, segments))
        for _line in _tracked(several, "Deciding", segments):
            pass
        if recheck.tally.different:
            self.status = exit_codes.FAILURE
        notes = itertools.chain.from_iterable(each.notes for each in segments)
        return {"notes": list(notes), **dataclasses.asdict(recheck.tally)}

    def show(self, found: Any) -> None:
        """All that differs or is missing, and the sum."""
        lines = [*found["notes"], *found["gaps"], *found["different"]]
        lines.append(
            f"{found['same']:,} of {found['decisions']:,} decisions got their recorded answer, "
            f"{len(found['different']):,} another one, {found['not_comparable']:,} had none; "
            f"{found['missing']:,} are missing in {len(found['gaps']):,} gaps"
        )
        self.app.stdout.write("".join(f"{line}\n" for line in lines))
