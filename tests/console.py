"""Console blocks of the pages: commands after ``$``, each with what it prints.

A shell stays open for all blocks of a page.  What differs from run to run is written as ``…`` on a
page, which stands for any text; numbers, times and ids are compared by their kind only.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXEMPT = re.compile(r"<!-- not tested: (.+?) -->\n$")
#: Run in order, part by part, by the test that has a Nova, a fresh clone or programs of its own.
IN_PARTS = re.compile(r"<!-- tested (?:with Nova|in a fresh clone|alone): (.+?) -->\n$")
ANY = "…"
_MARK = "--- end of command"
_KINDS = (
    (r"req-[0-9a-f-]{36}", "REQUEST"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?( UTC)?", "TIME"),
    (r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "0"),
    (r"[-+ ─━]+(?=\n|$)", ""),
    (r"-{3,}|─{3,}|━{3,}", "-"),
    (r"[ \t]+", " "),
)


@dataclass(frozen=True)
class Command:
    """One command of a page and what it prints there."""

    text: str
    printed: str


def blocks(page: Path, part: str | None) -> Iterator[str]:
    """The content of blocks that are run; those of a *part*, or all that are in none."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        before = text[: found.start()]
        its_part = IN_PARTS.search(before)
        if not EXEMPT.search(before) and part == (its_part and its_part[1]):
            yield found[1]


def commands(page: Path, part: str | None = None) -> list[Command]:
    """The commands of *page* that are run; a line that ends with ``\\`` goes on in the next."""
    found = []
    for content in blocks(page, part):
        joined = content.replace("\\\n> ", "\\\n")
        first, *parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)
        assert not first, f"{page.name}: a block begins with a command: {first}"
        for part in parts:
            lines = part.split("\n")
            end = next(at for at, line in enumerate(lines) if not line.endswith("\\"))
            found.append(Command("\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :])))
    return found


def run(
    each: Sequence[Command], folder: Path, environment: Mapping[str, str], seconds: float
) -> list[str]:
    """What each command prints, in one shell."""
    ends = [f"{command.text}\necho '{_MARK}'\n" for command in each]
    with (folder / "printed").open("w+", encoding="utf-8") as out:
        subprocess.run(
            ["bash", "-c", "exec 2>&1\n" + "".join(ends)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            timeout=seconds, check=False,
        )  # fmt: skip
        out.seek(0)
        printed = out.read().split(f"{_MARK}\n")
    assert len(printed) == len(each) + 1, f"the shell ended after: {printed[-1]}"
    return printed[:-1]


def agree(shown: str, printed: str) -> bool:
    """Whether the page shows what was *printed*, but for what differs from run to run."""
    parts = [re.escape(_kinds(part).strip()) for part in shown.split(ANY)]
    return (
        re.fullmatch(r"\s*" + r".*?".join(parts) + r"\s*", _kinds(printed), re.DOTALL) is not None
    )


def _kinds(text: str) -> str:
    for pattern, kind in _KINDS:
        text = re.sub(pattern, kind, text)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
