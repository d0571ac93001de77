"""What `make test` tries out runs on machines of any speed; `make fuzz` looks at the second."""

from __future__ import annotations

import pytest

from tests.fuzz import verdicts


@pytest.fixture(autouse=True)
def any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow an input ten times the processor time."""
    monkeypatch.setenv(verdicts.MOST_SECONDS_VARIABLE, str(10 * verdicts.MOST_SECONDS))
