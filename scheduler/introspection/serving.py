"""The server of one worker for those who ask about it."""

from __future__ import annotations

import contextlib

from oslo_config import cfg
from oslo_log import log as logging
from oslo_messaging.transport import RPCTransport

from scheduler.board import Board
from scheduler.introspection.endpoint import IntrospectionEndpoint
from scheduler.introspection.subject import Subject
from scheduler.manager import SchedulerManager
from scheduler.rpc.private import build_private_server
from scheduler.rpc.worker_client import worker_name, worker_topic

LOG = logging.getLogger(__name__)


def serve_introspection(
    conf: cfg.ConfigOpts,
    manager: SchedulerManager,
    board: Board,
    transport: RPCTransport,
    ending: contextlib.ExitStack,
) -> None:
    """Answer to this worker's own name from now on; *ending* learns how to end that.

    The name is the daemon's and the worker's place on the *board*, counted from 1 on.  It has a
    server, and so threads, of its own: it answers also while every thread of the other one waits.
    """
    if board.place is None:
        LOG.warning("This worker is one too many, and cannot be asked about its state")
        return
    subject = Subject(conf, manager, number=board.place + 1, workers=board.workers)
    name = worker_name(subject.host, subject.number)
    endpoints = [IntrospectionEndpoint(subject)]
    server = build_private_server(transport, worker_topic(conf), name, endpoints)
    server.start()
    ending.callback(server.wait)
    ending.callback(server.stop)
