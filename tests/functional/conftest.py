"""Every test below this folder needs real servers or real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lives here, so that ``-m functional`` finds it."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.functional)
