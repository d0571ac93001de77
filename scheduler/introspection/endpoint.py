"""The methods that a worker can be asked by, as an RPC endpoint on a queue of its own.

A method is a function of the worker that is asked and of keyword arguments, all plain data; so is
its result.  Whatever it needs of the decision lock is short.
"""

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.transport import RPCTransport

from scheduler import errors
from scheduler.daemon.worker_table import WorkerTable
from scheduler.introspection import state, what_if
from scheduler.introspection.state import Subject
from scheduler.manager import SchedulerManager
from scheduler.rpc import connection
from scheduler.rpc.client import INTROSPECTION, INTROSPECTION_VERSION, worker_name, worker_topic
from scheduler.rpc.server import Server

LOG = logging.getLogger(__name__)

METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "worker": state.worker,
    "explain": state.explain,
    "state_summary": state.state_summary,
    "state_refresh": state.state_refresh,
    "shadow_report": state.shadow_report,
    "what_if": what_if.what_if,
}


class IntrospectionEndpoint:
    """Asks the worker by METHODS; nothing else of it is within reach."""

    target = oslo_messaging.Target(namespace=INTROSPECTION, version=INTROSPECTION_VERSION)

    def __init__(self, subject: Subject) -> None:
        for name, function in METHODS.items():
            setattr(self, name, _answering(function, subject))


def _answering(function: Callable[..., Any], subject: Subject) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @oslo_messaging.expose
    def answer(_context: Any, **arguments: Any) -> Any:
        with errors.as_invalid("args", TypeError):
            signature.bind(subject, **arguments)
        return function(subject, **arguments)

    return answer


def serve_introspection(
    conf: cfg.ConfigOpts,
    manager: SchedulerManager,
    table: WorkerTable,
    transport: RPCTransport,
    ending: contextlib.ExitStack,
) -> None:
    """Answer to this worker's own name from now on; *ending* learns how to end that.

    The name is the daemon's and the worker's place in the *table*, counted from 1 on.  It has a
    server, and so threads, of its own: it answers also while every thread of the other one waits.
    """
    if table.place is None:
        LOG.warning("This worker is one too many, and cannot be asked about its state")
        return
    subject = Subject(conf, manager, number=table.place + 1, workers=table.workers)
    name = worker_name(conf.host, subject.number)
    connection.TEMPORARY.add(worker_topic(conf))
    Server(transport, worker_topic(conf), name, [IntrospectionEndpoint(subject)]).serve(ending)
