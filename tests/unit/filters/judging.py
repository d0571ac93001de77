"""One filter, one host, one request: the code of the reason against the host, or nothing."""

from typing import Any

import pytest

from tests.builders import a_conf, a_host, a_request, verdict


def rows(*described: tuple[Any, ...]) -> list[Any]:
    """Rows of a table, whose first column says what each is about."""
    return [pytest.param(*row[1:], id=row[0]) for row in described]


def judge(cls: Any, host: Any = None, request: Any = None, **options: Any) -> str:
    """The code of the reason for which *cls* removes the host; empty if it passes.

    *host* and *request* are what the builders make, or their arguments.  *options* are those of
    ``[filter_scheduler]``, or ``group__name``.
    """
    conf = a_conf(**options)
    state = a_host(**(host or {})) if host is None or isinstance(host, dict) else host
    spec = a_request(**(request or {})) if request is None or isinstance(request, dict) else request
    return "".join(verdict(cls(conf), state, spec))
