"""Templates in ``cell_mappings``, filled from the URL of this process."""

from __future__ import annotations

import pytest

from scheduler.db import cell_urls

BASE = "mysql+pymysql://nova:s%40cret@db.example:3306/nova_cell0?charset=utf8#f"


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("sqlite:///plain", None, "sqlite:///plain"),
        (
            "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell1?{query}",
            BASE,
            "mysql+pymysql://nova:s%40cret@db.example:3306/nova_cell1?charset=utf8",
        ),
        ("{path}-{fragment}", BASE, "nova_cell0-f"),
        ("{scheme}:////{path}x", "sqlite:////tmp/n.sqlite", "sqlite:////tmp/n.sqlitex"),
        ("x://{hostname}:{port}/y", "mysql://u@h/n", "x://h:None/y"),
        ("x://u:a{{b}}@h/{path}", BASE, "x://u:a{b}@h/nova_cell0"),
    ],
)
def test_filled(text, base, expected):
    assert cell_urls.filled(text, base, "database_connection", "[database]/connection") == expected


@pytest.mark.parametrize(
    ("text", "base", "message"),
    [
        ("x://{hostname}/y", None, "is a template, but [database]/connection is not set"),
        ("x://u:a{b@h/y", BASE, "is a template that cannot be filled"),
        ("x://{nosuch}/y", BASE, "is a template that cannot be filled"),
        ("x://{0}/y", BASE, "is a template that cannot be filled"),
    ],
)
def test_what_cannot_be_filled_stays_and_is_logged(text, base, message, caplog):
    filled = cell_urls.filled(text, base, "database_connection", "[database]/connection")
    assert filled == text
    assert all(
        each.startswith(f"Cell mapping database_connection {message}") for each in caplog.messages
    )
    assert len(caplog.messages) == 1
    assert "s%40cret" not in caplog.text
    assert "Traceback" not in caplog.text
