"""What no file of the project may say: where it was made, and where packages come from."""

from __future__ import annotations

import re
import sys

import pytest

from tests.house.tree import ROOT, files, name_of

FORBIDDEN = {
    "the folder of this checkout": re.escape(str(ROOT)) + r"\b",
    "the environment that runs the tests": re.escape(sys.prefix) + r"\b",
    "a reference to a tracker": r"\b(issue|ticket|bug)s? #?\d",
    "where packages are fetched from": "index" + "-url|find" + "-links",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_says(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.IGNORECASE)
    saying = [
        name_of(path)
        for path in files()
        if pattern.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert saying == []
