"""Connections to Placement and Keystone: few, and none that outlives its call."""

import contextlib
import threading
from typing import Any, Final

import requests
from keystoneauth1 import exceptions, loading, noauth
from keystoneauth1.adapter import Adapter
from oslo_config import cfg

from scheduler import errors

_NOAUTH: Final = "noauth"


def adapter_from_conf(
    conf: cfg.ConfigOpts, name: str, needed_for: str, http: requests.Session | None = None
) -> Adapter:
    """The way to the service that the group *name* describes; nothing connects yet.

    ``noauth`` is an older name of ``auth_type`` ``none``.  Raises ConfigurationError when the
    options cannot be used, or are not set: they are *needed_for* another one.
    """
    group = conf[name]
    try:
        is_older_name = group.auth_type == _NOAUTH and not group.auth_section
        load = loading.load_auth_from_conf_options
        auth = noauth.NoAuth() if is_older_name else load(conf, name)
        if auth is None:
            raise errors.ConfigurationError(
                option=f"[{name}] auth_type", reason=f"it must be set where {needed_for}"
            )
        session = loading.load_session_from_conf_options(conf, name, auth=auth, session=http)
        return loading.load_adapter_from_conf_options(conf, name, session=session)
    except (exceptions.ClientException, cfg.Error, TypeError) as error:
        raise errors.ConfigurationError(option=f"[{name}]", reason=str(error)) from error


class Connections(requests.adapters.HTTPAdapter):
    """At most so many connections at a time, a new one for each call.

    A server may close a kept one just when it is used, and may have fewer processes than there are
    kept ones.  A call waits for its turn as long as it would for its answer.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._free = most, threading.Semaphore(most)

    def send(self, *args: Any, **more: Any) -> requests.Response:
        """See the base class."""
        if not self._free.acquire(timeout=more["timeout"]):
            text = "no connection was free for %.3g s: [placement] max_connections = %d"
            raise requests.ConnectionError(text % (more["timeout"], self._most))
        try:
            with contextlib.closing(requests.adapters.HTTPAdapter()) as alone:
                response = alone.send(*args, **more)
                # What is raw keeps the connection, which is in use until all of it is read.
                _content, response.raw = response.content, None
                return response
        finally:
            self._free.release()
