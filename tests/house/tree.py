"""The project's files and their syntax trees, as the house rules look at them."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("scheduler", "conductor_stub")
CODE = (*PACKAGES, "tests", "benchmarks", "manual")
ELSEWHERE = (ROOT / "tests/nova/inside", ROOT / "tests/nova_functional/inside")
"""What runs in another environment, on the packages that are installed there."""


@functools.cache
def files() -> tuple[Path, ...]:
    """Every file that belongs to the project: tracked by git, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return tuple(path for name in listed if name and (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """The Python files below the top-level *folders*."""
    return [
        path
        for path in files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders
    ]


def name_of(path: Path) -> str:
    """How a complaint names a file."""
    return str(path.relative_to(ROOT))


def module_of(path: Path) -> str:
    """The dotted name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def syntax_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports_of(path: Path) -> Iterator[str]:
    """What a file imports, as dotted names; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(syntax_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
