"""Calls as a Nova service makes them, with its own client, and recorded messages."""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from oslo_config import cfg

from conductor_stub.rpcapi import SchedulerAPI
from scheduler import conf as project_options
from scheduler.rpc import transport as rpc_transport
from scheduler.rpc.context import RequestContext
from tests.world.deployment import render

WIRE = pathlib.Path(__file__).parents[1] / "data" / "wire"
ANSWER_SECONDS = 60


def recorded(name: str) -> dict[str, Any]:
    """The message of a file in ``tests/data/wire``."""
    text = (WIRE / f"{name}.json").read_text(encoding="utf-8")
    message: dict[str, Any] = json.loads(text)["message"]
    return message


def a_context() -> RequestContext:
    return RequestContext(user_id="user", project_id="project")


@contextlib.contextmanager
def scheduler_api(
    folder: pathlib.Path,
    transport_url: str,
    cap: str | None = None,
    response_seconds: int = ANSWER_SECONDS,
    topic: str = "scheduler",
    rabbit: Mapping[str, Any] | None = None,
) -> Iterator[SchedulerAPI]:
    """A client of the schedulers on *transport_url*, capped at the version *cap*.

    *rabbit* are options of ``[oslo_messaging_rabbit]``.

    oslo.messaging reads the process-wide options, so there is one client at a time.
    """
    settings: dict[str, dict[str, Any]] = {
        "DEFAULT": {
            "transport_url": transport_url,
            "scheduler_topic": topic,
            "rpc_response_timeout": response_seconds,
            "long_rpc_timeout": 2 * ANSWER_SECONDS,
        },
        "upgrade_levels": {"scheduler": cap} if cap else {},
        "oslo_messaging_rabbit": dict(rabbit or {}),
        "oslo_concurrency": {"lock_path": str(folder)},
    }
    config = folder / "client.conf"
    config.write_text(render(settings), encoding="utf-8")
    conf = cfg.CONF
    project_options.register_all(conf)
    rpc_transport.set_defaults()
    conf(["--config-file", str(config)], project="nova")
    transport = rpc_transport.get_transport(conf)
    try:
        yield SchedulerAPI(transport, conf)
    finally:
        transport.cleanup()
        conf.reset()
