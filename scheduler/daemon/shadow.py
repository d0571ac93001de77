"""``nova-scheduler --shadow``: one worker that decides what another scheduler is asked."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from scheduler import errors
from scheduler.claims import loading
from scheduler.daemon import service
from scheduler.daemon.periodic import RepeatingTask
from scheduler.db.databases import Databases
from scheduler.drivers.filter_scheduler import FilterScheduler
from scheduler.drivers.loading import driver_class
from scheduler.manager import SchedulerManager
from scheduler.rpc import connection, messages, transport
from scheduler.rpc.client import SHADOW
from scheduler.rpc.dispatcher import BaseAPI, SchedulerEndpoint
from scheduler.rpc.server import Server
from scheduler.shadow import Outcomes

DRIVER: Final = "scheduler.shadow.ShadowScheduler"
LOOK_SECONDS: Final = 0.1
ANSWER_KEYS: Final = frozenset((messages.MESSAGE_ID, messages.REPLY_QUEUE, "_timeout"))
"""Keys of a request that say whom to answer, and to send heartbeats meanwhile."""


def configure(conf: cfg.ConfigOpts) -> None:
    """Change *conf* such that nothing is written and nobody takes this for a scheduler.

    Raises ConfigurationError for a bus that nobody else is on, and for other drivers.
    """
    if transport.is_in_process(conf):
        reason = "--shadow needs the message bus of the scheduler that it is compared with"
        raise errors.ConfigurationError(option=transport.OPTION, reason=reason)
    if not issubclass(driver_class(conf), FilterScheduler):
        reason = "--shadow compares what filters and weighers decide, and no other driver"
        raise errors.ConfigurationError(option="[scheduler] driver", reason=reason)
    conf.set_override("host", conf.host + SHADOW)
    conf.set_override("read_only", True, group="database")
    conf.set_override("database", False, group="explain")
    # Placement is asked for lists, as by Nova: about one host it is asked only before a claim.
    options = {"driver": DRIVER, "workers": 1, "placement_query": "fleet", "rpc_fast_path": False}
    if conf.scheduler.claims == loading.DATABASE:
        options["claims"] = loading.NONE
    for name, value in {**options, "state_fresh_seconds": 0}.items():
        conf.set_override(name, value, group="scheduler")


class CopiedDeliveries(connection.Deliveries):
    """Copies of requests that somebody else answers: nobody here learns whom to answer."""

    def received(self, leave: Callable[[Any], None], message: Any) -> None:
        """Take the address of the answer out; drop what cannot be read."""
        self._limits.bound_size(message)
        request = messages.unpack(message.body)
        if request is None:
            message.channel.basic_reject(message.delivery_tag, requeue=False)
            return
        kept = {name: request[name] for name in request.keys() - ANSWER_KEYS}
        messages.replace(message, kept)
        super().received(leave, message)


class ShadowService(service.Service):
    """The worker of a shadow: it takes copies, and looks for outcomes."""

    def _new_server(
        self, transport: RPCTransport, _builds: Any, manager: SchedulerManager
    ) -> Server:
        """Serve copies; those of builds, which callers up to Juno send, are left alone."""
        topic = f"{self._topic}.{self._conf.host}"
        connection.TEMPORARY.add(topic)
        connection.COPIED[topic] = self._topic
        endpoints: list[Any] = [SchedulerEndpoint(manager), BaseAPI(service.SERVICE)]
        return Server(
            transport, topic, self._conf.host, endpoints, self._in_flight, CopiedDeliveries
        )

    def _start_tasks(
        self, manager: SchedulerManager, databases: Databases, ending: contextlib.ExitStack
    ) -> None:
        super()._start_tasks(manager, databases, ending)
        outcomes = Outcomes(databases, manager.driver)
        look = functools.partial(manager.driver.look, outcomes.read)
        task = RepeatingTask("outcomes", look, LOOK_SECONDS)
        ending.callback(task.stop)
        task.start(LOOK_SECONDS)
