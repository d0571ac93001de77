"""One number, one parse per distinct content, as long as somebody uses it."""

from __future__ import annotations

import pytest

from scheduler.hosts.documents import DocumentPool


@pytest.fixture
def parsed():
    return []


@pytest.fixture
def pool(parsed):
    def parse(content):
        parsed.append(content)
        return [content]

    return DocumentPool(parse)


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
    assert pool.acquire("a") != first
