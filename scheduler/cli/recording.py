"""``recording``: files of recorded decisions, looked at, decided again, merged, without names."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from scheduler import errors, exit_codes
from scheduler.cli import command
from scheduler.cli.command import action, argument
from scheduler.recording import merging
from scheduler.recording.arrivals import is_recording
from scheduler.recording.checking import Recheck
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
def show(_command: Any, args: Any) -> list[Sequence[Any]]:
    """List files of a recording: when they were written, and what is in them."""
    found: list[Sequence[Any]] = []
    for path in args.files:
        times, refused, hosts, gaps = list[float](), 0, 0, 0
        for _number, line in Segment(path, lenient=args.lenient):
            times.append(line["now"])
            refused += line["answer"] == []
            hosts = len(line["rows"]) if line["full"] else hosts
            gaps += bool(line.get("gap"))
        ends = [moment(each) for each in (times[0], times[-1])] if times else [None, None]
        found.append((str(path), *ends, len(times), refused, hosts, gaps))
    return found


def _saved(path: Path, lines: Iterable[Line]) -> dict[str, Any]:
    if not is_recording(path):
        raise errors.InvalidRequest(field="--output", reason=f"the name ends in {SUFFIX}")
    try:
        return {"decisions": save(path, lines), "file": str(path)}
    except OSError as error:
        raise errors.InvalidRequest(field="--output", reason=str(error)) from error


@action(command.Text, *_FILES, _OUTPUT, needs_tables=False, words=_WRITTEN)
def merge(_command: Any, args: Any) -> dict[str, Any]:
    """Merge files of several workers into one history: claims before what depends on them."""
    return _saved(args.output, merging.merged(args.files, lenient=args.lenient))


@action(command.Text, *_FILES, _OUTPUT, needs_tables=False, words=_WRITTEN)
def anonymize(_command: Any, args: Any) -> dict[str, Any]:
    """Replace names of hosts, projects, users, servers and groups; several files are merged."""
    names = merging.Anonymous()
    for line in merging.merged(args.files, lenient=args.lenient):
        names.learn(line)
    lines = map(names.line, merging.merged(args.files, lenient=args.lenient))
    return _saved(args.output, lines)


class Check(command.Text):
    """Decide recorded requests again on the recorded state, and compare with their answers.

    The status is 1 if one of them is answered otherwise.
    """

    needs_tables = False
    arguments = _FILES

    def act(self, args: Any) -> dict[str, Any]:
        recheck, notes = Recheck(), list[str]()
        for path in args.files:
            segment = Segment(path, lenient=args.lenient)
            for _line in recheck.play(segment):
                pass
            notes += segment.notes
        if recheck.tally.different:
            self.status = exit_codes.FAILURE
        return {"notes": notes, **dataclasses.asdict(recheck.tally)}

    def show(self, found: Any) -> None:
        """All that differs or is missing, and the sum."""
        lines = [*found["notes"], *found["gaps"], *found["different"]]
        lines.append(
            f"{found['same']:,} of {found['decisions']:,} decisions got their recorded answer, "
            f"{len(found['different']):,} another one, {found['not_comparable']:,} had none; "
            f"{found['missing']:,} are missing in {len(found['gaps']):,} gaps"
        )
        self.app.stdout.write("".join(f"{line}\n" for line in lines))
