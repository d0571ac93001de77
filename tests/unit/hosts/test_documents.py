"""One number, one parse per distinct content, as long as somebody uses it."""

from __future__ import annotations

import json

import pytest

from scheduler import errors
from scheduler.hosts.documents import DocumentPool


@pytest.fixture
def parsed():
    return []


@pytest.fixture
def complaints():
    return []


@pytest.fixture
def pool(parsed, complaints):
    def parse(content):
        parsed.append(content)
        if content == "bad":
            raise errors.InvalidRequest(field="f", reason="r")
        return [content]

    return DocumentPool(parse, lambda number, error: complaints.append((number, str(error))))


def test_equal_contents_share_a_number_and_a_parse(pool, parsed):
    first, second, other = (pool.acquire(content) for content in ("a", "a", "b"))

    assert first == second != other
    assert pool.parsed(first) is pool.parsed(second)
    assert parsed == ["a"]
    assert pool.content(other) == "b"


def test_a_content_is_forgotten_with_its_last_user(pool):
    first = pool.acquire("a")
    pool.acquire("a")

    pool.release(first)
    assert pool.content(first) == "a"
    pool.release(first)

    assert len(pool) == 0
    assert pool.acquire("b") == first
    assert pool.content(first) == "b"


def test_a_content_that_cannot_be_read_counts_as_none_and_is_complained_of_once(pool, complaints):
    number = pool.acquire("bad")

    assert pool.parsed(number) == pool.parsed(number) == [None]
    assert complaints == [(number, "Invalid request: f: r")]
    assert pool.content(number) == "bad"


@pytest.mark.parametrize(
    "text",
    ["x" * 5000, '{"é": "\ud800"}' * 40, json.dumps({str(n): n for n in range(300)})],
    ids=["alike", "half a surrogate", "a document"],
)
def test_a_long_text_takes_less_room_and_comes_back_as_it_was(pool, parsed, text):
    number = pool.acquire(text)

    assert pool.acquire(text[:1] + text[1:]) == number
    assert pool.acquire(text + " ") != number
    assert pool.content(number) == text
    assert pool.parsed(number) == [text]
    assert len(pool._entries[number]._content) < len(text)
    pool.release(number)
    pool.release(number)
    assert pool.acquire("another") == number
