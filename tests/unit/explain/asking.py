"""The real ``explain`` command, answered by a manager in this process instead of over the bus."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from scheduler import exit_codes
from scheduler.cli import bus
from scheduler.cli.explain import Explain
from scheduler.explain.answer import answer


class _Daemons:
    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def all(self, method: str, **arguments: Any) -> list[bus.Answer[Any]]:
        """What travels over the bus is JSON."""
        assert method == "explain"
        told = json.loads(json.dumps(answer(self._manager, **arguments)))
        return [bus.Answer(bus.Worker("here", 1), told)]


class _App:
    NAME = "nova-scheduler-manage"

    def __init__(self, conf: Any, database: Any) -> None:
        self.stdout = io.StringIO()
        self.conf = conf
        self.databases = SimpleNamespace(main=database)


class _Explain(Explain):
    manager: Any

    @contextlib.contextmanager
    def asking(self, parsed_args: Any) -> Iterator[Any]:
        if self.manager is None:
            raise bus.NoWorker(reason=f"none of {parsed_args.daemon}")
        yield _Daemons(self.manager)


def explain(manager: Any, conf: Any, *words: str, database: Any = None) -> str:
    """What ``explain`` with these *words* prints; without *manager* no worker answers."""
    app = _App(conf, database)
    command = _Explain(app, None)
    command.manager = manager
    parsed = command.get_parser("explain").parse_args(list(words))
    assert command.take_action(parsed) == exit_codes.OK
    return app.stdout.getvalue()
