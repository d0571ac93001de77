"""The real ``explain`` command, answered by a manager in this process instead of over the bus."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
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

    def __init__(self, conf: Any, database: Any = None) -> None:
        self.stdout = io.StringIO()
        self.conf = conf
        self.databases = database


class _Asked(Explain):
    manager: Any

    @contextlib.contextmanager
    def asking(self, parsed_args: Any) -> Iterator[Any]:
        del parsed_args
        yield _Daemons(self.manager)


class _Alone(Explain):
    @contextlib.contextmanager
    def asking(self, parsed_args: Any) -> Iterator[Any]:
        raise bus.NoWorker(reason=f"none of {parsed_args.daemon}")
        yield


class _Databases:
    def __init__(self, main: Any) -> None:
        self.main = main


def explain_stored(database: Any, conf: Any, *words: str) -> str:
    """The same where no worker answers and there is the *database*."""
    app = _App(conf, _Databases(database))
    command = _Alone(app, None)
    parsed = command.get_parser("explain").parse_args(list(words))
    assert command.take_action(parsed) == exit_codes.OK
    return app.stdout.getvalue()


def explain(manager: Any, conf: Any, *words: str) -> str:
    """What ``explain`` with these *words* prints."""
    app = _App(conf)
    command = _Asked(app, None)
    command.manager = manager
    parsed = command.get_parser("explain").parse_args(list(words))
    assert command.take_action(parsed) == exit_codes.OK
    return app.stdout.getvalue()
