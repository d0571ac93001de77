"""``recording``: files of recorded decisions, looked at, decided again, merged, without names."""

import argparse
import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from scheduler import errors, exit_codes
from scheduler.cli import command
from scheduler.cli.command import action, argument
from scheduler.recording import merging
from scheduler.recording.arrivals import files_of, is_recording
from scheduler.recording.checking import Recheck
from scheduler.recording.segments import SUFFIX, Line, Segment, moment, save

_FILES = (
    argument("files", metavar="FILE", nargs="+", type=Path, help="recorded files, or a folder"),
    argument("--lenient", action="store_true", help="take what can be read of truncated files"),
)


def _new_file(text: str) -> Path:
    """A file of a recording that can be written and is not there; else it is a usage error."""
    path = command.writable(text)
    if path.exists() or not is_recording(path):
        raise argparse.ArgumentTypeError(f"{text!r} is no new file with a name in {SUFFIX}")
    return path


_OUTPUT: Final = argument(
    *("-o", "--output"), metavar="FILE", type=_new_file, required=True, help=f"new file, *{SUFFIX}"
)
_WRITTEN: Final = "{decisions} decisions are in {file}."


@action(
    command.List,
    *_FILES,
    columns=("File", "Begin", "End", "Decisions", "Refused", "Hosts", "Gaps"),
    nothing="There is no file of a recording.",
)
def show(self: Any, args: Any) -> list[list[Any]]:
    """List files of a recording: when they were written, and what is in them."""
    found: list[list[Any]] = []
    never = None if args.formatter in command.FOR_PROGRAMS else "-"
    with _segments(self, args) as segments:
        for segment in command.tracked(segments, "Reading"):
            row: list[Any] = [str(segment.path), never, never, 0, 0, 0, 0]
            found.append(row)
            for _place, line in segment:
                with segment.use():
                    row[2] = moment(line["now"])
                    row[1] = row[1] if row[3] else row[2]
                    row[3] += 1
                    row[4] += line["answer"] == []
                    row[5] = len(line["rows"]) if line["full"] else row[5]
                    row[6] += bool(line.get("gap"))
    return found


@contextlib.contextmanager
def _segments(self: Any, args: Any) -> Iterator[list[Segment]]:
    """The files; in the end, a warning for each that could not be read to its end."""
    faults = errors.Faults(lenient=args.lenient)
    yield [Segment(path, faults) for path in files_of(args.files)]
    for note in faults.notes:
        self.tell(f"warning: {note}")


def _saved(path: Path, lines: Iterable[Line], what: str) -> dict[str, Any]:
    with errors.as_invalid("--output", OSError):
        return {"decisions": save(path, command.tracked(lines, what)), "file": str(path)}


@action(command.Text, *_FILES, _OUTPUT, words=_WRITTEN)
def merge(self: Any, args: Any) -> dict[str, Any]:
    """Merge files of several workers into one history: claims before what depends on them."""
    with _segments(self, args) as segments:
        return _saved(args.output, merging.merged(segments), "Merging")


@action(command.Text, *_FILES, _OUTPUT, words=_WRITTEN)
def anonymize(self: Any, args: Any) -> dict[str, Any]:
    """Replace names of hosts, projects, users, servers and groups; several files are merged."""
    names = merging.Anonymous()
    with _segments(self, args) as segments:
        for segment in command.tracked(segments, "Reading names"):
            names.learn(segment)
        lines = map(names.line, merging.merged(segments))
        return _saved(args.output, lines, "Replacing names")


class Check(command.Text):
    """Decide recorded requests again on the recorded state, and compare with their answers.

    The status is 1 if one of them is answered otherwise.
    """

    arguments = _FILES

    def act(self, args: Any) -> dict[str, Any]:
        recheck, faults = Recheck(), errors.Faults(lenient=args.lenient)
        for path in command.tracked(files_of(args.files), "Deciding"):
            recheck.play(Segment(path, faults))
        if recheck.tally.different:
            self.status = exit_codes.FAILURE
        return {"notes": faults.notes, **dataclasses.asdict(recheck.tally)}

    def show(self, found: Any) -> None:
        lines = [*found["notes"], *found["gaps"], *found["different"]]
        lines.append(
            f"{found['same']:,} of {found['decisions']:,} decisions got their recorded answer, "
            f"{len(found['different']):,} another one, {found['not_comparable']:,} had none; "
            f"{found['missing']:,} are missing in {len(found['gaps']):,} gaps"
        )
        self.app.stdout.write("".join(f"{line}\n" for line in lines))
