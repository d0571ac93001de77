"""Commands that send messages, and those that ask every running worker of every daemon."""

import argparse
import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import kombu.exceptions
import oslo_messaging as messaging
from oslo_messaging.transport import RPCTransport

from scheduler import broker, errors
from scheduler.cli import command
from scheduler.cli.command import Argument
from scheduler.db import layout, migration, services
from scheduler.explain.rendering import Paper
from scheduler.rpc import connection, transport
from scheduler.rpc.client import WorkerClient

UNDELIVERED: Final = (
    messaging.MessagingException,
    kombu.exceptions.KombuError,
    *transport.REFUSALS,
    OSError,
)
"""Errors of a message that cannot be sent; the RPC library does not translate all of them."""
BROKER_RETRIES: Final = 2
"""A person waits: a broker that cannot be reached is given up after so many more attempts."""
CONNECT_SECONDS: Final = 8.0
REPLY_QUEUES: Final = "reply_"
"""Prefix of the library's reply queues; a command leaves none of its own behind."""

BINARY: Final = "nova-scheduler"
FIND_SECONDS: Final = 10.0
"""Longest time in which a worker may say that it is there."""
MOST_AT_ONCE: Final = 16
WIDTH_IF_NO_TERMINAL: Final = 160
"""Characters of a line where the output goes into a file or a pipe."""

Found = TypeVar("Found")


class BusUnusable(errors.NovaException):
    """The broker cannot be reached, or refuses this program."""

    msg_fmt = "the message bus cannot be used: %(reason)s"


class NoWorker(errors.NovaException):
    msg_fmt = "No worker of nova-scheduler answers: %(reason)s"


class OnBus(command.Base):
    """A command that sends messages, and leaves no queue behind."""

    PARTNER: ClassVar[str] = "scheduler"

    @contextlib.contextmanager
    def bus(self) -> Iterator[RPCTransport]:
        """The message bus; ConfigurationError for one in this process, BusUnusable for failures."""
        if transport.is_in_process(self.conf):
            raise errors.ConfigurationError(
                option=transport.OPTION,
                reason=f"the bus inside this process reaches no {self.PARTNER}; name a broker's",
            )
        connection.TEMPORARY.add(REPLY_QUEUES)
        bus = transport.get_transport(self.conf)
        try:
            self._require_broker()
            yield bus
        except UNDELIVERED as error:
            raise BusUnusable(reason=str(error)) from error
        finally:
            bus.cleanup()

    def _require_broker(self) -> None:
        """Connect once: the library itself tries for ever to listen for the first answer."""
        found = list(broker.connect_all(self.conf, CONNECT_SECONDS))
        failures = [f"{broker.name_of(each)}: {why}" for each, why in found if why is not None]
        if len(failures) == len(found):
            raise BusUnusable(reason="; ".join(failures))


class Worker(NamedTuple):
    host: str
    number: int

    def __str__(self) -> str:
        return f"worker {self.number} of {BINARY} on {self.host}"


class Answer(NamedTuple):
    worker: Worker
    result: Any


class Daemons:
    """The workers of the daemons on *hosts*; *silent* says what is wrong with silent ones."""

    def __init__(self, client: WorkerClient, hosts: Sequence[str], timeout_seconds: float) -> None:
        self._client = client
        self._hosts = list(dict.fromkeys(hosts))
        self._timeout_seconds = timeout_seconds
        self.silent: list[str] = []

    def workers(self) -> list[Worker]:
        """All there should be, those that did not answer left out; NoWorker if there is none."""
        found = [one for some in _side_by_side(self._find, self._hosts) for one in some]
        if not found:
            raise NoWorker(reason="; ".join(self.silent) or "none is known")
        return found

    def all(self, method: str, **arguments: Any) -> list[Answer]:
        """The answer of every worker to *method*; NoWorker if all are silent.

        InvalidRequest of a worker is raised; who answers with another error counts as silent.
        """

        def one(worker: Worker) -> list[Answer]:
            try:
                return [Answer(worker, self.one(worker, method, **arguments))]
            except NoWorker as error:
                self.silent.append(error.kwargs["reason"])
            except errors.InvalidRequest:
                raise
            except (errors.NovaException, messaging.RemoteError) as error:
                self.silent.append(f"{worker}: {str(error).strip().splitlines()[0]}")
            return []

        answers = [answer for some in _side_by_side(one, self.workers()) for answer in some]
        if not answers:
            raise NoWorker(reason="; ".join(self.silent))
        return answers

    def one(
        self, worker: Worker, method: str, at_most_seconds: float = math.inf, **arguments: Any
    ) -> Any:
        """The answer of *worker*; NoWorker if it is silent, its errors as they are."""
        host, number = worker
        seconds = min(self._timeout_seconds, at_most_seconds)
        try:
            return self._client.ask(host, number, method, seconds, **arguments)
        except messaging.MessageUndeliverable as error:
            reason = f"{worker} is not there: it may just be starting"
            raise NoWorker(reason=reason) from error
        except messaging.MessagingTimeout as error:
            raise NoWorker(reason=f"{worker} did not answer within {seconds:g} s") from error

    def _find(self, host: str) -> list[Worker]:
        """The workers on *host*: the first that answers says how many there are."""
        quiet: list[int] = []
        while True:
            worker = Worker(host, len(quiet) + 1)
            try:
                count = self.one(worker, "worker", FIND_SECONDS)["workers"]
            except NoWorker as error:
                is_beyond = isinstance(error.__cause__, messaging.MessageUndeliverable)
                if not is_beyond:
                    self.silent.append(error.kwargs["reason"])
                    quiet.append(worker.number)
                    continue
                if not quiet:
                    self.silent.append(f"{BINARY} on {host} does not listen: is it running?")
                return []
            return [Worker(host, n) for n in range(1, count + 1) if n not in quiet]


def _side_by_side(function: Callable[[Any], Found], things: Sequence[Any]) -> list[Found]:
    with ThreadPoolExecutor(max_workers=MOST_AT_ONCE) as pool:
        return list(pool.map(function, things))


def worker_arguments(timeout_seconds: int = 30) -> Sequence[Argument]:
    return (
        command.repeated(
            *("--daemon", "HOST"),
            "ask the nova-scheduler of this host, not of each that has a row in the services table",
        ),
        command.timeout(timeout_seconds, "a worker"),
    )


class OnWorkers(OnBus):
    """A command that asks the running workers, with :func:`worker_arguments`."""

    @contextlib.contextmanager
    def asking(self, parsed_args: argparse.Namespace) -> Iterator[Daemons]:
        """The daemons that the options mean; in the end, a line for each silent worker."""
        hosts = parsed_args.daemon or self._hosts()
        with self.bus() as bus:
            client = WorkerClient(bus, self.conf, retry=BROKER_RETRIES)
            daemons = Daemons(client, hosts, parsed_args.timeout)
            yield daemons
        for text in sorted(daemons.silent):
            self.tell(f"warning: {text}")

    def console(self) -> Paper:
        console = Paper(file=self.app.stdout)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console = Paper(file=self.app.stdout, width=WIDTH_IF_NO_TERMINAL)
        return console

    def _hosts(self) -> list[str]:
        """Where the services table says that there is a daemon; else this host."""
        migration.check_ready(self.database, layout.NEEDED_TABLES)
        with self.database.read() as connection:
            found = services.list_all(connection, BINARY)
        return [each.host for each in found] or [self.conf.host]
