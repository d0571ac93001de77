"""Why a server went where it went, or nowhere."""

from __future__ import annotations

from typing import Any

from scheduler.explain import answering
from scheduler.introspection.subject import Subject


def explain(subject: Subject, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The decisions on the request id or instance uuid *name* that this worker remembers."""
    return answering.answer(subject.manager, name, on_host)
