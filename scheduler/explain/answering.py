"""What one worker knows of a request or an instance, as plain data."""

from __future__ import annotations

from typing import Any, Final

from scheduler import errors
from scheduler.engine.record import DecisionRecord
from scheduler.explain import form
from scheduler.explain.one_host import on_host

#: So many decisions are told of at most: those of one request are few.
MOST_RECORDS: Final = 20


def answer(manager: Any, name: str, on_host: str | None = None) -> list[dict[str, Any]]:
    """The records of the request id or instance uuid *name*, the newest first.

    Each has the form of ``form.to_dict``; with *on_host*, the key of that name says what became of
    that host.  Raises InvalidRequest for what is no name.
    """
    for field, value in (("name", name), ("on_host", on_host)):
        if not isinstance(value, str | None) or (field == "name" and not value):
            raise errors.InvalidRequest(field=field, reason="a text is needed")
    records = manager.recorder.records.of(name)[:MOST_RECORDS]
    return [explained(record, manager.driver, on_host) for record in records]


def explained(record: DecisionRecord, driver: Any, host: str | None = None) -> dict[str, Any]:
    """One record; the decision lock is held while its details are looked up."""
    host_manager: Any = getattr(driver, "host_manager", None)
    if not hasattr(host_manager, "table"):
        return form.to_dict(record)
    with host_manager.lock:
        told = form.to_dict(record)
        if host is not None:
            told["on_host"] = on_host(record, driver, host)
    return told
