"""What no file of the project may say, and which recorded message a test must name."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.house.tree import PACKAGES, ROOT, files, name_of, python_files, syntax_of

FORBIDDEN = {
    "the folder of this checkout": re.escape(str(ROOT)) + r"\b",
    "the environment that runs the tests": re.escape(sys.prefix) + r"\b",
    "a reference to a tracker": r"\b(issue|ticket|bug)s? #?\d",
    "where packages are fetched from": "index" + "-url|find" + "-links",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_says(what):
    pattern = re.compile(FORBIDDEN[what], re.IGNORECASE)
    saying = [
        name_of(path)
        for path in files()
        if pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert saying == []


def test_every_recorded_message_is_named_by_a_test():
    sources = [path for path in python_files("tests") if path != Path(__file__)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    samples = (ROOT / "tests/data/wire").glob("*.json")
    names = {path.stem.removesuffix(".request") for path in samples}
    assert {name for name in names if name not in text} == set()


def test_no_docstring_begins_like_a_question():
    """A noun phrase or a verb says sooner what a thing is; so do notes on attributes."""
    question = re.compile(r"\s*(What|Which|How|Whether|Why|So that)\b")
    asking = [
        f"{name_of(path)}:{line} {text.splitlines()[0]}"
        for path in python_files(*PACKAGES)
        for line, text in (*_docstrings(path), *_notes(path))
        if question.match(text)
    ]
    assert asking == []


def _docstrings(path):
    for node in ast.walk(syntax_of(path)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield node.lineno, text


def _notes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        before, mark, text = line.partition("#: ")
        if mark and not before.strip():
            yield number, text
