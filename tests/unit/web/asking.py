"""Asking an HTTP server that was started for a test."""

import http.client
import socket
from dataclasses import dataclass

SECONDS = 10


@dataclass(frozen=True)
class Reply:
    """What came back; the names of the headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(listening: socket.socket, target: str, method: str = "GET") -> Reply:
    """Send one request to the server behind *listening*."""
    host, port = listening.getsockname()[:2]
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request(method, target)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, response.read())
    finally:
        connection.close()
