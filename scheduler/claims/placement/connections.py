"""Connections to Placement and Keystone: few, and none that a server may be about to close."""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import requests
from keystoneauth1 import exceptions, loading, noauth
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from scheduler import errors
from scheduler.threads import in_thread

#: Age at which a connection is closed: a server may have as many processes as connections, and
#: one that closes them itself does so just when they are used.
KEPT_SECONDS: Final = 0.25
#: Time after the deadline in which a call may end by its own timeout, which says more.
OWN_TIMEOUT_SECONDS: Final = 0.1
_NOAUTH: Final = "noauth"
#: Where a call runs: ``ends_at``, when nobody waits for its answer any longer.
_CALL: Final = threading.local()


def adapter_from_conf(
    conf: cfg.ConfigOpts, name: str, needed_for: str, http: requests.Session | None = None
) -> Adapter:
    """The way to the service that the group *name* describes; nothing connects yet.

    ``noauth`` is an older name of ``auth_type`` ``none``.  Raises ConfigurationError when the
    options cannot be used, or are not set: they are *needed_for* another one.
    """
    group = conf[name]
    _check(group, name)
    try:
        is_older_name = group.auth_type == _NOAUTH and not group.auth_section
        load = loading.load_auth_from_conf_options
        auth = noauth.NoAuth() if is_older_name else load(conf, name)
        if auth is None:
            raise _refused(name, "auth_type", f"it must be set where {needed_for}")
        session = loading.load_session_from_conf_options(conf, name, auth=auth, session=http)
        return loading.load_adapter_from_conf_options(conf, name, session=session)
    except (exceptions.ClientException, cfg.Error, TypeError) as error:
        raise errors.ConfigurationError(option=f"[{name}]", reason=str(error)) from error


def _check(group: Any, name: str) -> None:
    """Raise ConfigurationError for what the libraries would find out with the first call only."""
    for option in ("cafile", "certfile", "keyfile"):
        path = group[option]
        if path and not os.access(path, os.R_OK):
            raise _refused(name, option, f"{path}: this user cannot read it")
    if group.timeout is not None and group.timeout <= 0:
        raise _refused(name, "timeout", f"{group.timeout:g} is not greater than 0")
    address = group.endpoint_override or ""
    if address and not address.lower().startswith(("http://", "https://")):
        raise _refused(name, "endpoint_override", f"{address} begins with no http:// or https://")


def _refused(name: str, option: str, reason: str) -> errors.ConfigurationError:
    return errors.ConfigurationError(option=f"[{name}] {option}", reason=reason)


def answer_until(ends_at: float, call: Callable[[], Any]) -> Any:
    """Return the result of *call*, or raise ConnectTimeout; what is not sent then never is."""

    def run() -> Any:
        _CALL.ends_at = ends_at
        return call()

    try:
        return in_thread(run).result(ends_at - time.monotonic() + OWN_TIMEOUT_SECONDS)
    except TimeoutError as error:
        raise exceptions.ConnectTimeout("the answer had not ended") from error


class Connections(requests.adapters.HTTPAdapter):
    """At most so many connections, none of which is used for longer than KEPT_SECONDS.

    A call waits for one as long as it would for its answer.  A claim gets one of its own: it could
    not be made again without a look if the server were just closing the connection.
    """

    def __init__(self, most: int) -> None:
        super().__init__(pool_maxsize=most)
        self._most, self._free = most, threading.Semaphore(most)
        self._is_timed, self._lock = False, threading.Lock()

    def send(self, *args: Any, **more: Any) -> requests.Response:
        if not self._free.acquire(timeout=more["timeout"]):
            text = "no connection was free for %.3g s: [placement] max_connections = %d"
            raise requests.ConnectionError(text % (more["timeout"], self._most))
        try:
            if time.monotonic() >= getattr(_CALL, "ends_at", math.inf):
                raise requests.Timeout("nobody waits for the answer any longer")
            if args[0].method in ("PUT", "POST"):
                with contextlib.closing(requests.adapters.HTTPAdapter()) as alone:
                    return _whole(alone.send(*args, **more))
            return _whole(super().send(*args, **more))
        finally:
            # Not before the call: the connection might be kept after its timer has run out.
            with self._lock:
                was_timed, self._is_timed = self._is_timed, True
            if not was_timed:
                timer = threading.Timer(KEPT_SECONDS, self._renew)
                timer.daemon = True
                timer.start()
            self._free.release()

    def _renew(self) -> None:
        """Begin with new connections; one in use is closed when it is given back.

        ``close`` alone leaves the old ones to the garbage collector; an error keeps its pool alive.
        """
        with self._lock:
            self._is_timed = False
        managers = (self.poolmanager, *self.proxy_manager.values())
        # The container of pools cannot be iterated.
        pools = [each.pools[key] for each in managers for key in each.pools.keys()]  # noqa: SIM118
        self.close()
        for pool in pools:
            pool.close()


def _whole(response: requests.Response) -> requests.Response:
    """*response*, all of it read: until then its connection is in use, and kept by what is raw."""
    _content, response.raw = response.content, None
    return response
