"""``broker check``: can the message broker be used, and is what the schedulers need on it."""

from collections.abc import Sequence
from typing import Any

from scheduler import broker, exit_codes
from scheduler.cli.command import List, action, timeout


@action(
    List,
    timeout(10, "a broker"),
    columns=("Broker", "What", "Name", "State", "Messages", "Consumers", "Detail"),
    nothing="The configuration names no broker.",
)
def check(command: List, args: Any) -> list[Sequence[Any]]:
    """Connect to every broker of the transport URL and look at the schedulers' queues.

    Nothing is made or changed. Exit status: 0 all is well, 10 a broker cannot be reached, 11 TLS
    failed, 12 the login was refused, 13 the virtual host was refused, 14 an exchange or queue is
    missing, different or without a consumer.
    """
    rows: list[Sequence[Any]] = []
    sights: list[Sequence[Any]] = []
    for connection, failure in broker.connect_all(command.conf, args.timeout):
        name = broker.name_of(connection)
        if failure is not None:
            command.status = command.status or failure.status
            state, detail = failure.state, str(failure)
        else:
            version = connection.connection.server_properties.get("version", "")
            sights = sights or [
                (name, *broker.look_at(connection, each)) for each in broker.declared(command.conf)
            ]
            tls = "with" if connection.ssl else "without"
            state, detail = "connected", f"version {version}, {tls} TLS"
        vhost = f"virtual host {connection.virtual_host}"
        rows.append((name, "connection", vhost, state, None, None, detail))
    if any(state != broker.PRESENT for _broker, _kind, _name, state, *_ in sights):
        command.status = command.status or exit_codes.BROKER_QUEUES
    return [*rows, *sights]
