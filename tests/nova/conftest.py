"""Every test below this folder needs a real Nova, in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
#: The first test of a run may have to wait until Nova is installed.
_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lives here, so that ``-m nova`` finds it and ``-m "not nova"`` leaves it out."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.nova)
            item.add_marker(pytest.mark.timeout(_SECONDS))
