"""A scheduler in this process, from the body of a message to the answer that leaves it.

All is real: the library's reader of bodies and server, every endpoint, the filter driver with
all filters and weighers, and databases with four hosts: our schema, or laid out as Nova's, with
cells.  Only the socket is missing; and the clock is the world's own: one run is like the next.
"""

import contextlib
import functools
import itertools
import json
import logging
import pathlib
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import kombu.message
import oslo_messaging
import sqlalchemy as sa
from oslo_messaging._drivers import amqpdriver, impl_rabbit
from oslo_messaging._drivers import common as driver_common
from oslo_serialization import jsonutils

from scheduler.builds.tasks import HavanaTasks, IcehouseTasks
from scheduler.daemon.service import build_manager, direct_builds
from scheduler.db import tables
from scheduler.db.databases import Databases
from scheduler.explain import recorder
from scheduler.filters import registry
from scheduler.introspection.endpoint import IntrospectionEndpoint
from scheduler.introspection.state import Subject
from scheduler.notifications import Notifier
from scheduler.rpc.connection import Deliveries
from scheduler.rpc.context import ObjectSerializer
from scheduler.rpc.dispatcher import BaseAPI, SchedulerEndpoint
from scheduler.rpc.fastpath.traffic import Receiver
from scheduler.rpc.messages import MessageLimits
from scheduler.rpc.server import Server
from tests.novas import Nova
from tests.process_options import on_in_process_bus
from tests.world import fleet

HOSTS = ("cmp1", "cmp2", "cmp3", "cmp4")
OWN, NOVA = "own", "nova"
SERVERS = (
    "INSERT INTO instances (uuid, host, node, deleted, created_at, project_id, user_id) VALUES "
    "('aaaaaaaa-0000-4000-a000-000000000001', '{host}', '{host}', 0, '2026-01-01', 'p', 'u')",
    "INSERT INTO instance_system_metadata (instance_uuid, key, value, deleted) VALUES "
    "('aaaaaaaa-0000-4000-a000-000000000001', 'image_hw_architecture', 'x86_64', 0)",
)
NOT_HERE = ("TrustedFilter", "ExactRamFilter", "ExactDiskFilter", "ExactCoreFilter")
"""Filters that ask a service elsewhere, or hide all hosts from nearly all requests."""
RENEWED_AFTER = 2000
"""Inputs served by one manager: what they changed is forgotten then."""


@dataclass(frozen=True)
class Answer:
    """What became of a message: an answer, a failure as the caller reads it, or nothing."""

    result: Any = None
    failure: dict[str, Any] | None = None
    is_dropped: bool = False
    seconds: float = 0.0
    """Of processor time."""
    fault_at: str = ""
    """Where the internal fault that the caller is told of was raised, for people."""


class Faults(logging.Handler):
    """Keeps where the latest internal fault was raised: all that is logged in a world."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.latest = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the innermost places of what *record* tells of."""
        if record.exc_info is not None and record.exc_info[2] is not None:
            frames = traceback.extract_tb(record.exc_info[2])[-4:]
            places = [f"{pathlib.Path(each.filename).name}:{each.lineno}" for each in frames]
            self.latest = ", ".join(places)


FAULTS = Faults()


class Incoming(amqpdriver.AMQPIncomingMessage):
    """A message whose answer is kept, in the form in which it would be sent."""

    answer: Answer | None = None

    def acknowledge(self) -> None:
        """There is no broker to tell."""

    def heartbeat(self) -> None:
        """There is nobody to tell."""

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        """Keep what would be sent; what cannot be put into JSON raises here as it would there."""
        if failure is not None:
            told = json.loads(driver_common.serialize_remote_exception(failure))
            self.answer = Answer(failure=told)
        else:
            self.answer = Answer(result=json.loads(jsonutils.dumps(reply)))


class Consumer:
    """What receives for *callback*, from no queue."""

    rabbit_stream_fanout = False
    queue = SimpleNamespace(channel=None)

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        self._callback: Any = functools.partial(impl_rabbit.Consumer._callback, self)


class Reader(amqpdriver.RpcAMQPListener):
    """The ways from a body to a message, without a connection: the fast one, or the library's."""

    message_cls = Incoming

    def __init__(self, limits: MessageLimits) -> None:
        super().__init__(SimpleNamespace(prefetch_size=1), None)
        self._consumer = Consumer(self)
        self._deliveries = Deliveries(limits)
        self._deliveries.take = Receiver(self, limits).take

    def read(self, body: bytes, content_type: str) -> Incoming | None:
        """The message of a body; None if it was rejected."""
        channel = SimpleNamespace(basic_ack=_nothing, basic_reject=_nothing, no_ack_consumers=None)
        raw = kombu.message.Message(
            body,
            content_type=content_type,
            content_encoding="utf-8",
            channel=channel,
            delivery_info={"redelivered": False},
            properties={"content_type": content_type, "content_encoding": "utf-8"},
        )
        self._deliveries.received(self._consumer._callback, raw)
        self._message_operations_handler.process()
        return self.incoming.pop() if self.incoming else None


class Compute:
    """Stands for the way to the compute hosts: encodes what is sent to them, and drops it."""

    def __getattr__(self, method: str) -> Any:
        serializer = ObjectSerializer()
        return lambda context, **sent: jsonutils.dumps(serializer.serialize_entity(context, sent))


class Stores:
    """Databases by name, on SQLite; *options* are the sections that make a scheduler read them."""

    def __init__(self, folder: pathlib.Path, layout: str, hosts: Sequence[str]) -> None:
        numbers = itertools.count()
        if layout == NOVA:
            cells = {"a": hosts[:2], "b": hosts[2:]}
            nova = Nova(lambda: f"sqlite:///{folder}/nova{next(numbers)}.sqlite", cells=cells)
            nova.add_aggregate(1, fleet.ZONE, hosts[0])
            nova.execute(
                "api",
                "INSERT INTO aggregate_metadata (aggregate_id, key, value) "
                f"VALUES (1, 'availability_zone', '{fleet.ZONE}')",
            )
            urls = nova.urls
            self.options = {
                "database": {"connection": urls["cell0"]},
                "api_database": {"connection": urls["api"]},
            }
            self._engines = {name: sa.create_engine(urls[name]) for name in ("api", "a")}
            servers = "a"
        else:
            url = f"sqlite:///{folder}/nova.sqlite"
            fleet.install(url, hosts)
            self.options = {"database": {"connection": url}}
            self._engines = {"main": sa.create_engine(url)}
            servers = "main"
        with self._engines[servers].begin() as connection:
            for statement in SERVERS:
                connection.exec_driver_sql(statement.format(host=hosts[0]))
        self._tables: dict[tuple[str, str], sa.Table] = {}

    def table(self, name: str, table: str) -> sa.Table | None:
        """A table as the database *name* has it; None where there is none."""
        if name not in self._engines or table not in tables.metadata.tables:
            return None
        if (name, table) not in self._tables:
            try:
                found = sa.Table(table, sa.MetaData(), autoload_with=self._engines[name])
            except sa.exc.NoSuchTableError:
                return None
            self._tables[name, table] = found
        return self._tables[name, table]

    @contextlib.contextmanager
    def written(self, name: str, table: sa.Table, values: Mapping[str, Any]) -> Iterator[bool]:
        """Within it the first row has *values*; whether the database took them."""
        engine = self._engines[name]
        with engine.begin() as connection:
            (key,) = table.primary_key
            saved = connection.execute(sa.select(table).order_by(key)).first()
        assert saved is not None, table.name
        row = key == getattr(saved, key.name)
        try:
            with engine.begin() as connection:
                connection.execute(sa.update(table).where(row).values(**values))
        except sa.exc.DBAPIError:
            yield False
            return
        try:
            yield True
        finally:
            with engine.begin() as connection:
                connection.execute(sa.update(table).where(row).values(**saved._mapping))

    def close(self) -> None:
        for each in self._engines.values():
            each.dispose()


class World:
    """The scheduler; made anew now and then on the same database."""

    def __init__(self, folder: pathlib.Path, layout: str = OWN) -> None:
        self.folder = folder
        self.stores = Stores(folder, layout, HOSTS)
        filters = [each.__name__ for each in registry.all_filters()]
        filters = [name for name in filters if name not in NOT_HERE]
        self.conf = on_in_process_bus(
            folder,
            {
                **self.stores.options,
                "scheduler": {"claims": "none", "driver": "caching_scheduler"},
                "filter_scheduler": {"enabled_filters": ",".join(filters)},
            },
            service_down_time="100000000",
        )
        self._transport = oslo_messaging.get_rpc_transport(self.conf)
        self._notifier = Notifier(oslo_messaging.get_notification_transport(self.conf), "fuzz")
        self._databases = Databases.from_conf(self.conf)
        self._reader = Reader(MessageLimits.from_conf(self.conf))
        self._numbers = itertools.count(1)
        self._began_at = time.time()
        self._served = 0
        self.latest_request_id = ""
        """Of the message that was served last."""
        self.renew()

    def renew(self) -> None:
        database = self._databases.main
        builds = direct_builds(self.conf, database, Compute(), self._notifier)
        self.manager = build_manager(self.conf, self._databases, builds=builds)
        self.manager.driver.host_manager.clock = self._clock
        self.manager.driver.host_manager.refresh()
        subject = Subject(self.conf, self.manager, 1, 1)
        endpoints = [
            SchedulerEndpoint(self.manager),
            HavanaTasks(builds, self.manager),
            IcehouseTasks(builds, self.manager),
            IntrospectionEndpoint(subject),
            BaseAPI("scheduler"),
        ]
        self._server: Server = Server(self._transport, "scheduler", "fuzz", endpoints)

    def _clock(self) -> float:
        return self._began_at + next(self._numbers) * 0.05

    def close(self) -> None:
        self._databases.dispose()
        self.stores.close()

    def serve(self, message: dict[str, Any]) -> Answer:
        """The answer to *message*, sent as a caller of today sends it, and never before."""
        number = next(self._numbers)
        self.latest_request_id = f"req-{number}"
        ids = {"_unique_id": f"u{number}", "_context_request_id": self.latest_request_id}
        message = {**message, **{key: ids[key] for key in ids if key in message}}
        body = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(message)})
        return self.receive(body.encode())

    def receive(self, body: bytes, content_type: str = "application/json") -> Answer:
        """What becomes of a body from the bus; raises whatever escapes from the server."""
        self._served += 1
        if self._served % RENEWED_AFTER == 0:
            self.renew()
        began = time.process_time()
        incoming = self._reader.read(body, content_type)
        if incoming is not None:
            self._server._process_incoming([incoming])
        seconds = time.process_time() - began
        if incoming is None:
            return Answer(is_dropped=True, seconds=seconds)
        answer = incoming.answer
        if answer is None:
            raise AssertionError("the caller gets no answer")
        return Answer(answer.result, answer.failure, seconds=seconds, fault_at=FAULTS.latest)


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """A broker that takes everything."""


@contextlib.contextmanager
def a_world(folder: pathlib.Path, layout: str = OWN) -> Iterator[World]:
    """A world in *folder*, silent: millions of refusals would fill any log."""
    root, telling_faults = logging.getLogger(), logging.getLogger(recorder.__name__)
    level = root.level
    root.setLevel(logging.CRITICAL + 1)
    telling_faults.setLevel(logging.ERROR)
    telling_faults.addHandler(FAULTS)
    telling_faults.propagate = False
    try:
        with contextlib.closing(World(folder, layout)) as world:
            yield world
    finally:
        root.setLevel(level)
        telling_faults.setLevel(logging.NOTSET)
        telling_faults.removeHandler(FAULTS)
        telling_faults.propagate = True
