"""What a workload file says, checked.

``common`` are settings of every subject, which its own replace (mappings are merged).  A row's
``value`` is an expression over ``SUBJECT.METRIC``, worked out per round; the row shows the median.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks import expression

FOLDER = Path(__file__).parent / "workloads"
FEWEST_ROUNDS = 5

Settings = Mapping[str, Any]


class WorkloadError(ValueError):
    """A workload file that cannot be run; the text names file and field."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what is measured, and how much of it is wanted."""

    what: str
    value: str
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    #: Sizes of fleets that it is shown for; without any: all.
    hosts: Sequence[int] = ()


@dataclass(frozen=True)
class Workload:
    """A file of ``workloads/``."""

    name: str
    about: str
    rounds: int
    seconds: float
    subjects: Mapping[str, Settings]
    rows: tuple[Row, ...]
    #: Subjects that must give the same answers.
    same_answers: tuple[tuple[str, ...], ...] = ()
    #: Settings of every subject at the size of a test.
    tiny: Settings = field(default_factory=dict)

    def at_tiny_size(self) -> Workload:
        """The same with ``tiny`` merged into every subject, for one short round.

        What ``tiny.subjects`` says of a subject goes to that one alone.
        """
        for_all = {name: value for name, value in self.tiny.items() if name != "subjects"}
        of_one = self.tiny.get("subjects", {})
        subjects = {
            name: merged(settings, for_all, of_one.get(name, {}))
            for name, settings in self.subjects.items()
        }
        return replace(self, subjects=subjects, rounds=2, seconds=0.02)

    def on(self, hosts: int) -> Workload:
        """The same on fleets of that size, which rows name, without what is for others."""
        subjects = {
            name: merged(settings, {"fleet": {"hosts": hosts}})
            for name, settings in self.subjects.items()
            if hosts in settings.get("hosts", [hosts])
        }
        kept = [row for row in self.rows if not row.hosts or hosts in row.hosts]
        rows = tuple(replace(row, what=f"{hosts:,} nodes: {row.what}") for row in kept)
        named = replace(self, name=f"{self.name} {hosts}", rows=rows)
        return replace(named, subjects={**self.subjects, **subjects}).only(list(subjects))

    @property
    def needs_servers(self) -> bool:
        """Whether a broker or a database server is to be started for it."""
        every = self.subjects.values()
        return any(each.get("database") == "mariadb" or "broker" in each for each in every)

    @property
    def needs_nova(self) -> bool:
        """Whether a Nova is to be installed for it."""
        every = self.subjects.values()
        return any("nova" in (each["run"], each.get("database")) for each in every)

    def only(self, names: Sequence[str] | None) -> Workload:
        """The same with the subjects *names* alone, and the rows that these allow; None: all."""
        if not names:
            return self
        if unknown := set(names) - self.subjects.keys():
            raise WorkloadError(f"{self.name}: no subject {', '.join(sorted(unknown))}")
        kept = {name: settings for name, settings in self.subjects.items() if name in names}
        rows = tuple(row for row in self.rows if expression.subjects(row.value) <= kept.keys())
        same = tuple(each for each in self.same_answers if set(each) <= kept.keys())
        return replace(self, subjects=kept, rows=rows, same_answers=same)


def names() -> list[str]:
    """Every workload there is, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Workload:
    """The workload of that name, or of the file of that path; WorkloadError if it is wrong."""
    path = Path(name) if name.endswith(".yaml") else FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise WorkloadError(f"no workload {name!r}; there are: {', '.join(names())}")
    return parse(path.stem, yaml.safe_load(path.read_text(encoding="utf-8")))


def parse(name: str, content: Any) -> Workload:
    """The workload *name* of a file's *content*."""
    try:
        common = content.get("common", {})
        workload = Workload(
            name=name,
            about=content["about"],
            rounds=content.get("rounds", FEWEST_ROUNDS),
            seconds=content.get("seconds", 0.5),
            subjects={
                each: merged(common, settings or {})
                for each, settings in content["subjects"].items()
            },
            rows=tuple(Row(**row) for row in content["rows"]),
            same_answers=tuple(tuple(each) for each in content.get("same_answers", ())),
            tiny=content.get("tiny", {}),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise WorkloadError(f"{name}: {type(error).__name__}: {error}") from error
    _check(workload)
    return workload


def merged(*several: Settings) -> dict[str, Any]:
    """The settings together; later ones win, inner mappings are merged likewise."""
    result: dict[str, Any] = {}
    for settings in several:
        for name, value in settings.items():
            both = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
            result[name] = merged(result[name], value) if both else value
    return result


def _check(workload: Workload) -> None:
    if workload.rounds < FEWEST_ROUNDS:
        raise WorkloadError(f"{workload.name}: rounds: at least {FEWEST_ROUNDS}")
    named = {name for row in workload.rows for name in _subjects_of(workload, row)}
    named |= {name for together in workload.same_answers for name in together}
    if unknown := named - workload.subjects.keys():
        raise WorkloadError(f"{workload.name}: no subject {', '.join(sorted(unknown))}")
    for name, settings in workload.subjects.items():
        if "run" not in settings:
            raise WorkloadError(f"{workload.name}: subjects: {name}: run is missing")


def _subjects_of(workload: Workload, row: Row) -> set[str]:
    try:
        return expression.subjects(row.value)
    except ValueError as error:
        raise WorkloadError(f"{workload.name}: rows: {row.what}: {error}") from error
