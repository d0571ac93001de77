"""The RabbitMQ management API, where there is one: queues and their consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import requests

from scheduler.broker.expected import Node

PORT: Final = 15672
TLS_PORT: Final = 15671


class Unavailable(Exception):
    """There is no management API to be had; the text says why."""


@dataclass(frozen=True)
class ListedQueue:
    """A queue that the broker has."""

    name: str
    messages: int
    consumers: int


def usual_url(node: Node) -> str:
    """The address of the API unless configured otherwise."""
    scheme, port = ("https", TLS_PORT) if node.tls else ("http", PORT)
    host = f"[{node.host}]" if ":" in node.host else node.host
    return f"{scheme}://{host}:{port}"


class Management:
    """The API at *url*, asked as the user of *node*, about its virtual host."""

    def __init__(self, url: str, node: Node, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._vhost = quote(node.vhost, safe="")
        self._timeout_seconds = timeout_seconds
        self._session = requests.Session()
        self._session.auth = (node.user, node.password)
        if isinstance(node.tls, dict) and "ca_certs" in node.tls:
            self._session.verify = node.tls["ca_certs"]

    def queues(self) -> list[ListedQueue]:
        """All queues; Unavailable if they cannot be listed."""
        listed = self._get(f"queues/{self._vhost}")
        return [
            ListedQueue(each["name"], each.get("messages", 0), each.get("consumers", 0))
            for each in listed
        ]

    def consumers(self) -> dict[str, list[str]]:
        """By queue: who consumes, as ``address:port (name of the connection)``."""
        found: dict[str, list[str]] = {}
        for each in self._get(f"consumers/{self._vhost}"):
            details = each.get("channel_details") or {}
            address = f"{details.get('peer_host')}:{details.get('peer_port')}"
            found.setdefault(each["queue"]["name"], []).append(address)
        return found

    def _get(self, path: str) -> list[dict[str, Any]]:
        try:
            answer = self._session.get(f"{self.url}/api/{path}", timeout=self._timeout_seconds)
            answer.raise_for_status()
            listed = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise Unavailable(f"{self.url}: {_cause(error)}") from error
        if not isinstance(listed, list):
            raise Unavailable(f"{self.url}: not the management API of RabbitMQ")
        return listed


def _cause(error: BaseException) -> str:
    """The innermost reason, which is one line."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return str(error).splitlines()[0] if str(error) else type(error).__name__
