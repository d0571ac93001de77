"""What a real broker brings takes the short way: also as the library's channel hands it over."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_messaging._drivers.amqpdriver import RpcAMQPListener

from scheduler import conf as project_options
from scheduler.rpc import transport as rpc_transport
from scheduler.rpc.server import BaseAPI, build_server
from tests.daemons.deployment import render
from tests.functional.bus import RawCaller
from tests.servers.rabbitmq import RabbitMQ

PING = {"method": "ping", "namespace": "baseapi", "version": "1.0", "args": {"arg": "é"}}


def test_requests_are_not_left_to_the_library(
    rabbitmq: RabbitMQ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    receive = RpcAMQPListener.__call__
    monkeypatch.setattr(
        RpcAMQPListener,
        "__call__",
        lambda listener, message: left.append(message) or receive(listener, message),
    )
    url = rabbitmq.url(rabbitmq.create_vhost())
    config = tmp_path / "server.conf"
    config.write_text(render({"DEFAULT": {"transport_url": url}}), encoding="utf-8")
    project_options.register_all(cfg.CONF)
    rpc_transport.set_defaults()
    cfg.CONF(["--config-file", str(config)], project="nova")
    bus = rpc_transport.get_transport(cfg.CONF)
    server = build_server(bus, "scheduler", "here", [BaseAPI("scheduler")])
    server.start()
    try:
        with RawCaller(url) as raw:
            answers = [raw.call(PING)["result"] for _number in range(3)]
    finally:
        server.stop()
        server.wait()
        bus.cleanup()
        cfg.CONF.reset()
    assert answers == [{"service": "scheduler", "arg": "é"}] * 3
    assert not left
