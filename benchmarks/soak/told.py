"""The forms' results: kept as JSON, and told as tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from benchmarks import machine
from benchmarks.soak import look, verdict
from benchmarks.soak.verdict import Judged, Scale

NAME: Final = "done.json"


@dataclass(frozen=True)
class Form:
    """What one form did, what became of each quantity, and of which objects there are more."""

    title: str
    done: Mapping[str, Any]
    judged: Sequence[tuple[str, Sequence[Judged]]]
    more: Mapping[str, Sequence[tuple[str, int]]]

    @property
    def grows(self) -> bool:
        """Whether anything does."""
        return any(each.is_flat is False for _title, several in self.judged for each in several)

    @property
    def is_judged(self) -> bool:
        """Whether it ran for long enough to tell anything."""
        return any(each.is_flat is not None for _title, several in self.judged for each in several)

    @classmethod
    def of(
        cls,
        title: str,
        done: Mapping[str, Any],
        kept: Sequence[tuple[str, look.Kept]],
        scale: Scale = Scale(),  # noqa: B008 - frozen
    ) -> Self:
        """Judge what was kept."""
        judged, more = [], {}
        for name, looks in kept:
            lines = list(looks)
            if not lines:
                continue
            samples = [(each[scale.by], each["sample"]) for each in lines]
            types = [(each[scale.by], each["types"]) for each in lines]
            growing = verdict.growing_types(types, scale)
            judged.append((name, [*verdict.judge_all(samples, scale), *growing]))
            more[name] = look.grown_types(lines)
        return cls(title, done, judged, more)

    def write(self, folder: Path) -> None:
        """Keep it for another process."""
        (folder / NAME).write_text(json.dumps(dataclasses.asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What :meth:`write` kept."""
        values = json.loads((folder / NAME).read_text(encoding="utf-8"))
        values["judged"] = [
            (name, [Judged(**each) for each in several]) for name, several in values["judged"]
        ]
        return cls(**values)


def render(forms: Sequence[Form]) -> str:
    """All tables, and the verdict in the last line."""
    lines = [machine.sentence(machine.notes())]
    for form in forms:
        facts = ", ".join(f"{name} {value:,}" for name, value in form.done.items())
        lines += ["", f"## {form.title}", "", facts]
        for name, judged in form.judged:
            lines.append(verdict.table(name, judged))
            grows = any(each.is_flat is False for each in judged)
            if grows and form.more.get(name):
                more = ", ".join(f"{count:+d} {what}" for what, count in form.more[name])
                lines.append(f"\nmore objects than half-way: {more}")
    decisions = sum(form.done.get("decisions", 0) for form in forms)
    growing = sorted(
        each.name
        for form in forms
        for _name, several in form.judged
        for each in several
        if each.is_flat is False
    )
    found = f"these grow: {', '.join(growing)}" if growing else "nothing grows"
    if not all(form.is_judged for form in forms):
        found = "too short to judge by"
    lines += ["", f"{decisions:,} decisions; {found}"]
    return "\n".join(lines)
