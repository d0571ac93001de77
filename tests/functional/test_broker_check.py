"""``broker check`` on a real broker, with TLS."""

import json

import pytest

from scheduler import exit_codes
from scheduler.cli import app
from tests.servers import rabbitmq as rabbitmq_server
from tests.servers.fixtures import require
from tests.servers.private import LOOPBACK
from tests.servers.rabbitmq import RabbitMQ
from tests.world.deployment import Deployment, render

HOST = "controller"


@pytest.fixture(scope="module")
def broker(authority):
    require(rabbitmq_server.PROGRAMS)
    with RabbitMQ(authority.certificate) as server:
        yield server


@pytest.fixture(scope="module")
def cloud(broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cloud")
    with Deployment(folder, broker.url(), f"sqlite:///{folder}/nova.sqlite") as made:
        made.sync_database()
        made.start_scheduler().wait_ready()
        yield made


@pytest.fixture
def check(cloud, tmp_path, capsys):
    """Status, rows and standard error of ``broker check`` with other *settings*."""

    def run(settings, *words):
        config = tmp_path / "nova.conf"
        database = {"database": {"connection": f"sqlite:///{tmp_path}/nova.sqlite"}}
        config.write_text(render({"DEFAULT": {"host": HOST}, **settings, **database}))
        capsys.readouterr()
        status = app.main(["--config-file", str(config), "broker", "check", *words, "-f", "json"])
        told = capsys.readouterr()
        return status, json.loads(told.out or "[]"), told.err

    return run


def on(broker, **rabbit):
    return {
        "DEFAULT": {"host": HOST, "transport_url": broker.url()},
        "oslo_messaging_rabbit": rabbit,
    }


def test_all_is_well(cloud):
    rows = cloud.manage("broker", "check")
    seen = {(row["what"], row["name"]): row for row in rows}
    assert {key: row["state"] for key, row in seen.items()} == {
        ("connection", "virtual host /"): "connected",
        ("exchange", "nova"): "present",
        ("exchange", "scheduler_fanout"): "present",
        ("queue", "scheduler"): "present",
        ("queue", f"scheduler.{HOST}"): "present",
    }
    served = seen["queue", "scheduler"]
    assert (served["messages"], served["consumers"]) == (0, 1)
    assert "without TLS" in seen["connection", "virtual host /"]["detail"]


def test_a_port_that_wants_tls_is_named(check, broker):
    """What else keeps from connecting: test_mistakes; more of TLS: test_tls."""
    settings = on(broker)
    url = f"rabbit://guest:my-secret@{LOOPBACK}:{broker.tls_port}/%2F"
    settings["DEFAULT"]["transport_url"] = url
    status, [row], errors = check(settings)
    assert (status, "does it want TLS?" in row["detail"]) == (exit_codes.BROKER_TLS, True)
    assert "my-secret" not in str(row) + errors


@pytest.mark.parametrize(
    ("default", "rabbit", "name", "state", "words"),
    [
        ({"host": "elsewhere"}, {}, "scheduler.elsewhere", "missing", "first started"),
        ({}, {"amqp_durable_queues": True}, "scheduler", "different", "but current is 'false'"),
        ({}, {"rabbit_quorum_queue": True}, "scheduler", "different", "but current is"),
    ],
)
def test_what_is_not_as_configured_is_named(check, broker, default, rabbit, name, state, words):
    settings = on(broker, **rabbit)
    settings["DEFAULT"].update(default)

    status, rows, _errors = check(settings)

    assert status == exit_codes.BROKER_QUEUES
    (row,) = [row for row in rows if row["what"] == "queue" and row["name"] == name]
    assert row["state"] == state
    assert words in row["detail"]


def test_a_queue_that_nobody_consumes(check, broker):
    settings = on(broker)
    settings["DEFAULT"]["host"] = "stopped"
    with broker.connect() as connection:
        channel = connection.channel()
        channel.queue_declare("scheduler.stopped", auto_delete=False)
        status, rows, _errors = check(settings)
        channel.queue_delete("scheduler.stopped")
    assert status == exit_codes.BROKER_QUEUES
    assert [row["name"] for row in rows if row["state"] == "no consumer"] == ["scheduler.stopped"]


def test_a_bus_without_a_broker(check):
    status, _rows, errors = check({"DEFAULT": {"transport_url": "fake://"}})
    assert status == exit_codes.FAILURE
    assert "[DEFAULT] transport_url: " in errors
