"""Where in the configuration files each setting stands; what it means is the library's business."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "DEFAULT"


@dataclass(frozen=True, slots=True)
class Setting:
    """One assignment: its group and name as the library sees them, and its place."""

    group: str
    name: str
    path: str
    line: int

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}"


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
