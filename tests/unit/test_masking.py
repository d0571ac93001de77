"""(text of others) -> what of it is shown."""

from __future__ import annotations

import pytest

from scheduler.masking import masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing to hide", "nothing to hide"),
        ("rabbit://nova:hidden@broker:5672/ is away", "rabbit://***@broker:5672/ is away"),
        ("a mysql+pymysql://u:hid@den@db/nova b", "a mysql+pymysql://***@db/nova b"),
        ("('postgresql://u:hidden@db/nova',)", "('postgresql://***@db/nova',)"),
        ("rabbit://a:hidden@x:1,b:hidden@y:2/v", "rabbit://***@y:2/v"),
        ("http://host/path?to=someone@example.org", "http://host/path?to=someone@example.org"),
        ("{'admin_password': 'hidden'}", "{'admin_password': '***'}"),
    ],
)
def test_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
