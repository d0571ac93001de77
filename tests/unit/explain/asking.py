"""``explain`` of a manager in this process: as it travels, and as it is printed."""

import io
import json
from typing import Any

from scheduler.explain import rendering
from scheduler.explain.answer import answer

UUID = "00000000-0000-4000-a000-000000000001"


class Context:
    """The context of the request that is asked about."""

    request_id = "req-7"


def told(manager: Any, name: str, host: str | None = None) -> Any:
    """The records of *name*; what travels over the bus is JSON."""
    return json.loads(json.dumps(answer(manager, name, host)))


def printed(manager: Any, name: str, host: str | None = None) -> str:
    """The same for people, on a wide terminal."""
    paper = io.StringIO()
    for record in told(manager, name, host):
        rendering.show(rendering.Paper(file=paper, width=160), record)
    return paper.getvalue()
