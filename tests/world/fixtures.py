"""Fixtures that start the project's programs and end them with the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from scheduler import concurrency
from tests.world.deployment import Deployment, Settings
from tests.world.process import BACKENDS, Daemon


class StartDaemon(Protocol):
    """The type of the ``daemon`` fixture."""

    def __call__(
        self,
        name: str,
        config_text: str,
        *arguments: str,
        backend: str = concurrency.EVENTLET,
        extra_environment: dict[str, str] | None = None,
    ) -> Daemon: ...


class MakeDeployment(Protocol):
    """The type of the ``deployment`` fixture."""

    def __call__(
        self,
        transport_url: str,
        database_url: str,
        driver: str = "filter_scheduler",
        backend: str = concurrency.EVENTLET,
        settings: Settings | None = None,
    ) -> Deployment: ...


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Both concurrency back ends in turn."""
    return str(request.param)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[StartDaemon]:
    """A function that starts a program on a configuration text."""
    with ExitStack() as stack:
        count = 0

        def start(
            name: str,
            config_text: str,
            *arguments: str,
            backend: str = concurrency.EVENTLET,
            extra_environment: dict[str, str] | None = None,
        ) -> Daemon:
            nonlocal count
            count += 1
            folder = tmp_path / f"{name}-{count}"
            folder.mkdir()
            config = folder / "nova.conf"
            config.write_text(config_text, encoding="utf-8")
            words = ["--config-file", str(config), *arguments]
            started = Daemon(name, words, folder, backend, extra_environment)
            stack.callback(started.close)
            return started

        yield start


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[MakeDeployment]:
    """A function that makes a :class:`Deployment`; see there for the arguments."""
    with ExitStack() as stack:
        count = 0

        def make(
            transport_url: str,
            database_url: str,
            driver: str = "filter_scheduler",
            backend: str = concurrency.EVENTLET,
            settings: Settings | None = None,
        ) -> Deployment:
            nonlocal count
            count += 1
            folder = tmp_path / f"deployment-{count}"
            folder.mkdir()
            made = Deployment(folder, transport_url, database_url, driver, backend, settings)
            stack.callback(made.close)
            return made

        yield make
