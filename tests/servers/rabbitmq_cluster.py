"""A private RabbitMQ cluster: nodes on loopback that replicate their quorum queues."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from tests.servers import programs
from tests.servers.private import LOOPBACK, PrivateServer
from tests.servers.rabbitmq import RabbitMQ

PROGRAMS = (programs.RABBITMQ_SERVER, programs.RABBITMQCTL, programs.EPMD)


class NameDaemon(PrivateServer):
    """The name daemon (epmd) of all nodes, which outlives any of them."""

    name = "epmd"
    stopped_code = -signal.SIGTERM

    def __init__(self) -> None:
        super().__init__()
        self.port = self.reserve_port()

    def set_up(self) -> None:
        """It keeps nothing."""

    def command(self) -> list[str]:
        program = str(programs.find(programs.EPMD))
        return [program, "-port", str(self.port), "-address", LOOPBACK]

    def answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=1).close()
        except OSError:
            return False
        return True


class Node(RabbitMQ):
    """One node; it joins *first* when it is first started, unless it is that itself."""

    def __init__(self, name_daemon_port: int, cookie: str, first: Node | None = None) -> None:
        super().__init__()
        self._name_daemon_port = name_daemon_port
        self._cookie = cookie
        self._first = first or self

    @property
    def node_name(self) -> str:
        return self.environment()["RABBITMQ_NODENAME"]

    def set_up(self) -> None:
        super().set_up()
        cookie = self.folder / "home" / ".erlang.cookie"
        cookie.write_text(self._cookie, encoding="utf-8")
        cookie.chmod(0o400)
        nodes = [self._first.node_name, *({self.node_name} - {self._first.node_name})]
        lines = [
            "log.file.level = info",
            "cluster_partition_handling = pause_minority",
            "cluster_formation.peer_discovery_backend = classic_config",
            *(
                f"cluster_formation.classic_config.nodes.{number} = {name}"
                for number, name in enumerate(nodes, 1)
            ),
        ]
        (self.folder / "rabbitmq.conf").write_text("\n".join([*lines, ""]), encoding="utf-8")


class RabbitMQCluster:
    """As many *nodes*; use it as a context manager."""

    def __init__(self, nodes: int = 3) -> None:
        self._stack = contextlib.ExitStack()
        self._count = nodes
        self.nodes: list[Node] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            names = stack.enter_context(NameDaemon())
            cookie = secrets.token_hex(10).upper()
            first = stack.enter_context(Node(names.port, cookie))
            others = [Node(names.port, cookie, first) for _number in range(self._count - 1)]
            self.nodes = [first, *others]
            for each in others:
                stack.callback(each.close)
            with ThreadPoolExecutor() as pool:
                list(pool.map(Node.start, others))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def url(self) -> str:
        """The transport URL that names all nodes."""
        parts = [node.url().removeprefix("rabbit://").removesuffix("/%2F") for node in self.nodes]
        return f"rabbit://{','.join(parts)}/%2F"
