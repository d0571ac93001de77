"""The routes of the HTTP server, and its connections on sockets that several workers share.

Only GET and HEAD exist: nothing can be changed from here.  The socket is opened before the workers
are forked: a port that is taken stops the start, and whichever worker is free accepts.  Threads and
sockets are native under both concurrency back ends, so that no answer waits for a decision.
"""

import contextlib
import http
import http.server
import ipaddress
import json
import re
import socket
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from oslo_log import log as logging

import scheduler
from scheduler import errors
from scheduler.concurrency import native

LOG = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
METHODS: Final = ("GET", "HEAD")
ACCEPT_SECONDS: Final = 0.5
"""Longest time until a server notices that it is to stop."""
IDLE_SECONDS: Final = 10.0
"""A client that sends or takes nothing for so long is left."""
MOST_SLOW: Final = 64
"""Connections of one worker that wait for their clients; one more ends the slowest one."""
MOST_AT_ONCE: Final = 2
"""Requests for one path that are worked on at once."""
MOST_WAITING: Final = 8
"""Requests that wait for those; any more get 503.  So the connections of one worker, each of which
has a thread, are as many as these limits add up to."""
BACKLOG: Final = 1024

OPTION: Final = "[metrics_endpoint] allowed_hosts"
ANY: Final = "*"

_NAME_AND_PORT: Final = re.compile(r"(?:\[([^]]*)\]|([^:]*))(?::\d*)?")
COMMON_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True)
class Request:
    """Request for one path.

    *rest* is what follows the path of a route that ends in ``/``; *query* keeps the last of
    several values of a name; the names in *headers* are in lower case.
    """

    path: str
    rest: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    body: bytes
    content_type: str = TEXT
    status: int = http.HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, text: str, status: int = http.HTTPStatus.OK, **headers: str) -> Self:
        return cls(f"{text}\n".encode(), TEXT, status, headers)

    @classmethod
    def of_json(cls, document: Any, status: int = http.HTTPStatus.OK) -> Self:
        return cls(json.dumps(document).encode(), JSON, status)


BUSY: Final = Response.of_text("busy", http.HTTPStatus.SERVICE_UNAVAILABLE)
Handler = Callable[[Request], Response]


class Routes:
    """Handlers by path, each for a few requests: no path keeps another one waiting."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Handler, Any, Any]] = {}
        self.add("/", lambda _asked: Response.of_text("\n".join(sorted(self._handlers))))

    def add(self, path: str, handler: Handler) -> None:
        """Let *handler* answer *path*, and below one with a final ``/``; the longest counts."""
        semaphore = native("threading").BoundedSemaphore
        room, turns = semaphore(MOST_AT_ONCE + MOST_WAITING), semaphore(MOST_AT_ONCE)
        self._handlers[path] = handler, room, turns

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> Response:
        """The answer to one request; never raises."""
        if method not in METHODS:
            status, allowed = http.HTTPStatus.METHOD_NOT_ALLOWED, ", ".join(METHODS)
            return Response.of_text("only GET and HEAD are answered", status, Allow=allowed)
        try:
            split = urllib.parse.urlsplit(target)
        except ValueError:  # what is no address is not found
            split = urllib.parse.urlsplit("")
        path = urllib.parse.unquote(split.path)
        place = self._place(path)
        if place is None:
            return Response.of_text("not found", http.HTTPStatus.NOT_FOUND)
        query = dict(urllib.parse.parse_qsl(split.query, keep_blank_values=True))
        asked = Request(path, path[len(place) :], query, headers)
        handler, room, turns = self._handlers[place]
        if not room.acquire(blocking=False):
            return BUSY
        try:
            with turns:  # every handler gives up after seconds
                return handler(asked)
        except TimeoutError as error:
            LOG.debug("%s: %s", place, error)
            return BUSY
        except Exception:
            LOG.exception("%s could not be answered", place)
            return Response.of_text("internal error", http.HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            room.release()

    def _place(self, path: str) -> str | None:
        if path in self._handlers:
            return path
        above = [each for each in self._handlers if each != "/" and each.endswith("/")]
        return max((each for each in above if path.startswith(each)), key=len, default=None)


def bind(host: str, port: int, option: str) -> socket.socket:
    """A socket that listens on *host*, *port* (0: any); ConfigurationError names *option*."""
    opened: socket.socket | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _name, address = found[0]
        opened = native("socket").socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError as error:
        if opened is not None:
            opened.close()
        reason = f"cannot listen on {at(host, port)}: {error.strerror or error}"
        reason += "; name an address of this machine and a port that is free"
        raise errors.ConfigurationError(option=option, reason=reason) from error
    return opened


def at(host: str, port: int) -> str:
    """Form of an address in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class KnownNames:
    """By which names a daemon may be asked: addresses, ``localhost``, this machine's name, *more*.

    With ``*`` among them any name.  With addresses among *more* only those, that of *host* and the
    loopback ones.  A page of somebody else can have its own name resolve to this machine's address,
    and then read in the visitor's browser what is served here (DNS rebinding).  The browser says
    which name it asked for, and an address cannot be rebound.
    """

    def __init__(self, more: Iterable[str] = (), host: str = "localhost") -> None:
        more = [_plain(each) for each in more]
        self._names = {*more, *map(_plain, ("localhost", socket.gethostname(), host))}
        self._has_addresses = any(map(_address, more))

    def knows(self, header: str | None) -> bool:
        """True when the sender of *header*, ``Host``, may be answered; no browser leaves it out."""
        if header is None or ANY in self._names:
            return True
        found = _NAME_AND_PORT.fullmatch(header.strip())
        name = _plain((found[1] or found[2] or "") if found else "")
        address = _address(name)
        if name in self._names or address is None:
            return name in self._names
        return not self._has_addresses or address.is_loopback


def _plain(name: str) -> str:
    """*name* in its one spelling; an address in the shortest, without brackets."""
    name = name.strip().rstrip(".").lower()
    address = _address(name.removeprefix("[").removesuffix("]"))
    return name if address is None else str(address)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    server_version = f"nova-scheduler/{scheduler.__version__}"
    sys_version = ""
    timeout = IDLE_SECONDS
    server: "Server"  # type: ignore[assignment]  # the library only passes it on

    def answer(self) -> None:
        with self.server.at_work(self.connection):
            response = self._response()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in {**COMMON_HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _response(self) -> Response:
        names = self.server.names
        for asked in self.headers.get_all("host", [None]):
            if names is not None and not names.knows(asked):
                text = f"not a name of this service: {asked!r}; see {OPTION}"
                return Response.of_text(text, http.HTTPStatus.FORBIDDEN)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.server.routes.answer(self.command, self.path, headers)

    def __getattr__(self, name: str) -> Any:
        # The base class looks for one method per HTTP method; which there are, the routes say.
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests and clients that hang up are nothing for the log."""
        LOG.debug(format, *args)


class Server:
    """Answers what comes in on *listening*, which others may listen on as well.

    Only who asks for one of *names* is answered; without them, everybody.
    """

    def __init__(
        self, listening: socket.socket, routes: Routes, name: str, names: KnownNames | None = None
    ) -> None:
        self._listening = listening
        self.routes = routes
        self.names = names
        self._name = name
        threading = native("threading")
        self._lock = threading.Lock()
        #: Connections that wait for their clients, the one that has waited longest first.
        self._slow: dict[socket.socket, None] = {}
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._listening.settimeout(ACCEPT_SECONDS)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more; the socket stays open, as it may be others' as well."""
        self._is_stopping.set()
        self._thread.join()

    @contextlib.contextmanager
    def at_work(self, connection: socket.socket) -> Iterator[None]:
        """A context in which *connection* does not wait for its client; OSError if it was ended."""
        with self._lock:
            if connection not in self._slow:  # half a request may look like one of HTTP/0.9
                raise ConnectionAbortedError("it made room for another client")
            del self._slow[connection]
        try:
            yield
        finally:
            self._wait_for_client(connection)

    def _wait_for_client(self, connection: socket.socket) -> None:
        """Note that *connection* waits, and end another one if there are too many of that kind."""
        with self._lock:
            self._slow[connection] = None
            if len(self._slow) <= MOST_SLOW:
                return
            slowest = next(iter(self._slow))
            del self._slow[slowest]
            with contextlib.suppress(OSError):  # its thread closes it
                slowest.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        threading = native("threading")
        while not self._is_stopping.is_set():
            try:
                connection, address = self._listening.accept()
            except OSError as error:  # a timeout, mostly; or the client has gone already
                if not isinstance(error, TimeoutError):
                    LOG.debug("No connection: %s", error)
                    self._is_stopping.wait(ACCEPT_SECONDS)
                continue
            self._wait_for_client(connection)
            arguments = (connection, address)
            try:
                threading.Thread(None, self._serve, self._name, arguments, daemon=True).start()
            except RuntimeError as error:  # as many as this machine allows
                LOG.warning("A client of the web server is left: %s", error)
                self._leave(connection)

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            connection.settimeout(IDLE_SECONDS)
            _Handler(connection, address, self)  # type: ignore[arg-type]
        except OSError as error:
            LOG.debug("A client hung up: %s", error)
        finally:
            self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._slow.pop(connection, None)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        connection.close()
