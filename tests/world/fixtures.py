"""Fixtures that start the project's programs and end them with the test, or with its module."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.world.deployment import Deployment
from tests.world.process import BACKENDS

MakeDeployment = Callable[..., Deployment]
"""Makes a deployment of what :class:`Deployment` takes, but for the folder."""


@pytest.fixture(params=BACKENDS)
def backend(request) -> str:
    """Both concurrency back ends in turn."""
    return str(request.param)


@pytest.fixture
def deployment(tmp_path) -> Iterator[MakeDeployment]:
    """A function that makes a :class:`Deployment` in a folder of its own."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def make(*arguments, **named):
            folder = tmp_path / f"deployment-{next(numbers)}"
            return stack.enter_context(Deployment(folder, *arguments, **named))

        yield make


@pytest.fixture(scope="session")
def on_sqlite(rabbitmq, tmp_path_factory) -> MakeDeployment:
    """A function that makes one on a virtual host and a file of its own; its user closes it."""

    def make(**named):
        folder = tmp_path_factory.mktemp("deployment")
        url = rabbitmq.url(rabbitmq.create_vhost())
        return Deployment(folder, url, f"sqlite:///{folder}/nova.sqlite", **named)

    return make
