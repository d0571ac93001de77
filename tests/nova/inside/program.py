"""Does with a real Nova's code what a test asks for; runs in the environment that has Nova.

Reads lines ``{"do": "fleet.add_host", "with": {...}}`` from standard input and answers each on
standard output with one line, ``{"returned": ...}`` or ``{"raised": {...}}``.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from nova import monkey_patch

monkey_patch.patch(backend="threading")

# Only now, as these would else settle on eventlet.
from nova import config, exception, objects  # noqa: E402

from tests.nova.inside import calls, fleet, measuring  # noqa: E402

ROOMS = {"measuring": measuring, "fleet": fleet, "calls": calls}


def main() -> None:
    answers = own_output()
    config.parse_args([sys.argv[0], *sys.argv[1:]])
    objects.register_all()
    write(answers, {"returned": "ready"})
    for request in requests():
        write(answers, answer(request))


def own_output() -> TextIO:
    """Standard output for the answers alone: what libraries print there goes to the errors."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what one line asks for."""
    room, _, name = request["do"].partition(".")
    function: Callable[..., Any] = getattr(ROOMS[room], name)
    try:
        return {"returned": function(**request["with"])}
    except Exception as error:  # noqa: BLE001 - the test is told of every one
        return {"raised": described(error)}


def described(error: Exception) -> dict[str, Any]:
    """What a test wants to know of an error that Nova's code raised."""
    return {
        "class": type(error).__name__,
        "text": str(error),
        "is_no_valid_host": isinstance(error, exception.NoValidHost),
        "kwargs": {name: str(value) for name, value in getattr(error, "kwargs", {}).items()},
        "traceback": traceback.format_exc(),
    }


def write(stream: TextIO, answered: dict[str, Any]) -> None:
    stream.write(json.dumps(answered) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
