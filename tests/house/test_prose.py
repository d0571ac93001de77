"""README and pages are plain: short sentences, short lines."""

import re

import pytest

from tests.house.tree import ROOT, files, name_of

MEAN_WORDS = 13
LONG_WORDS = 30
LONG_SHARE = 0.03
LINE_CHARACTERS = 120
#: Evidence is tables of measurements, not help; the changelog is a list.
APART = ("docs/evidence/",)
PAGES = [
    path
    for path in files()
    if path.suffix == ".md"
    and not name_of(path).startswith(APART)
    and (name_of(path).startswith("docs/") or path.parent == ROOT)
    and path.name != "CHANGELOG.md"
]
_ITEM = re.compile(r"([*+-]|\d+\.) +(.*)")
_WORD = re.compile(r"[^\W_]+(?:['’./-][^\W_]+)*")


def paragraphs(text):
    """Paragraphs and items of lists; no headings, tables, code and comments."""
    kept = []
    is_code = False
    for line in [*re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).splitlines(), ""]:
        stripped = line.strip()
        fence, item = stripped.startswith("```"), _ITEM.fullmatch(stripped)
        ends = fence or item or not stripped or stripped[0] in "#|"
        if ends and kept:
            yield " ".join(kept)
            kept = []
        if fence:
            is_code = not is_code
        elif not is_code and stripped and stripped[0] not in "#|":
            kept.append(item[2] if item else stripped)


def sentences(text):
    """The words of each sentence; code counts as one word, a fragment of one or two not at all."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"`[^`]*`", "code", plain).replace("**", "")
        for sentence in re.split(r"(?<=[.!?])\s+", plain):
            words = _WORD.findall(sentence)
            if len(words) > 2:
                yield words


@pytest.fixture(scope="module")
def lengths():
    """Words of every sentence of every page."""
    return [len(words) for path in PAGES for words in sentences(path.read_text(encoding="utf-8"))]


def test_sentences_are_short(lengths):
    assert len(lengths) > 1000
    assert sum(lengths) / len(lengths) <= MEAN_WORDS


def test_few_sentences_are_long(lengths):
    assert sum(each > LONG_WORDS for each in lengths) / len(lengths) <= LONG_SHARE


def test_lines_are_short():
    too_long = [
        f"{name_of(path)}:{number}"
        for path in PAGES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LINE_CHARACTERS
    ]
    assert too_long == []
