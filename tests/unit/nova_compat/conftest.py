"""Nova's modules for one test, and none of them left behind."""

from __future__ import annotations

import contextlib
import queue
import sys
from collections.abc import Iterator
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler import nova_compat
from tests.builders import a_conf

ROOTS = ("nova", "oslo")


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    """What the modules are configured by; a test may change it before it imports them."""
    return a_conf()


@pytest.fixture
def installed(conf: cfg.ConfigOpts, clean_imports: None) -> None:
    """Nova's modules can be imported."""
    nova_compat.install(conf)


@pytest.fixture
def clean_imports() -> Iterator[None]:
    """Whatever the test makes importable or imports is forgotten with it."""
    finders, modules = list(sys.meta_path), set(sys.modules)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ROOTS:
            del sys.modules[name]


class Host:
    """Records what is cast to it, undecoded."""

    target = oslo_messaging.Target(version="2.37")

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[dict[str, Any], dict[str, Any]]] = queue.Queue()

    def run_instance(self, context: dict[str, Any], **arguments: Any) -> None:
        self.received.put((context, arguments))


@contextlib.contextmanager
def listening(conf: cfg.ConfigOpts, name: str, topic: str) -> Iterator[Host]:
    """A host on the bus inside this process."""
    host = Host()
    server = oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf, url="fake://"),
        oslo_messaging.Target(topic=topic, server=name, exchange="nova"),
        [host],
        executor="threading",
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    server.start()
    yield host
    server.stop()
    server.wait()
