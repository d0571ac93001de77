"""The Guru Meditation Report: what a process is at, on SIGUSR2 (reference page service, 7).

It is made where the signal finds the process, be it in the middle of something or hanging, so
nothing here takes a lock or waits; what changes meanwhile is left out.
"""

import contextlib
import datetime
import functools
import os
import pathlib
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any, ClassVar, Final

from oslo_config import cfg
from oslo_reports import guru_meditation_report

import scheduler
from scheduler import errors
from scheduler.conf.effective import masked
from scheduler.engine.record import DecisionRecord
from scheduler.explain.recorder import decision_line
from scheduler.hosts.capacity import host_states
from scheduler.rpc.in_flight import InFlightRequests

DECISIONS_SHOWN: Final = 20
STDERR: Final = 2
WATCHED_FILE: Final = "[oslo_reports] file_event_handler"

Generator = Callable[[], Any]
#: Vendor, name and version of the program, for the library.
_VERSION: Final = SimpleNamespace(
    vendor_string=lambda: "OpenStack",
    product_string=lambda: "nova-scheduler, standalone",
    version_string_with_package=lambda: scheduler.__version__,
)


class Report(guru_meditation_report.TextGuruMeditation):
    """The library's report; a section that cannot be made leaves the others, and no secret."""

    persistent_sections: ClassVar[list[tuple[str, Generator]]] = []

    def add_section(self, heading: Any, generator: Generator, index: int | None = None) -> None:
        super().add_section(heading, lambda: _guarded(generator), index)

    def run(self) -> str:
        return masked(super().run()) + "\n"

    @classmethod
    def handle_signal(
        cls, version: Any, service_name: str | None, log_dir: str | None, frame: FrameType | None
    ) -> None:
        """Tell, on standard error or in a file of this process; never raises.

        The signal may have come while something was written to the stream itself, hence the file
        descriptor.
        """
        try:
            text = cls(version, frame).run().encode()
        except Exception:  # noqa: BLE001 - written instead of the report
            text = f"No report could be made:\n{traceback.format_exc()}".encode()
        moment = datetime.datetime.now(datetime.UTC).strftime(cls.timestamp_fmt)
        try:
            if log_dir:
                name = f"{service_name}_gurumeditation_{moment}_{os.getpid()}"
                (pathlib.Path(log_dir) / name).write_bytes(text)
            while text and not log_dir:
                text = text[os.write(STDERR, text) :]
        except OSError as error:
            os.write(STDERR, f"No report could be written: {error}\n".encode())


def _guarded(generator: Generator) -> Any:
    """The text that *generator* makes; or why it makes none."""
    try:
        made = generator()
        with contextlib.suppress(AttributeError):  # of what is a text already
            made.set_current_view_type("text")
        return str(made)
    except Exception as error:  # noqa: BLE001 - a broken section is named, and the next one made
        return f"not available: {type(error).__name__}: {error}"


class Reports:
    """The sections on manager and requests, which the master of several workers never has."""

    def __init__(self) -> None:
        self._manager: Callable[[], Any] = lambda: None
        self._in_flight: InFlightRequests | None = None
        self._watch: Callable[[], None] | None = None

    def install(self, conf: cfg.ConfigOpts, program: str) -> None:
        """Tell on SIGUSR2, in forks, too; ConfigurationError for a watched file that is missing."""
        watched = conf.oslo_reports.file_event_handler
        if watched and not os.access(watched, os.R_OK):
            raise errors.ConfigurationError(
                option=WATCHED_FILE, reason=f"{watched} is not there, or cannot be read"
            )
        Report.persistent_sections = [
            ("Fleet", self._fleet),
            ("Requests in flight", lambda: "\n".join(self._requests())),
            ("Last decisions", lambda: "\n".join(self._decisions())),
        ]
        start = functools.partial(Report.setup_autorun, _VERSION, program, conf=conf)
        if watched:
            self._watch = start  # in a thread, which no fork takes along
        else:
            start()

    def begin(self, in_flight: InFlightRequests, manager: Callable[[], Any]) -> None:
        """Report of this worker from now on; *manager* gives its manager, None at first."""
        self._in_flight, self._manager = in_flight, manager
        if self._watch is not None:
            self._watch()

    def _fleet(self) -> str:
        manager = self._manager()
        if manager is None:
            return "none in this process: each worker has its own, ask those"
        hosts = manager.driver.host_manager
        age = hosts.state_age_seconds
        figures = {
            "driver": type(manager.driver).__name__,
            "state age (s)": None if age is None else round(age, 1),
            "last read failed": hosts.is_failing,
            **host_states(hosts.table, hosts.clock(), hosts.service_down_time_seconds),
            "instances": len(hosts.table.host_of_instance),
            "reserved": len(list(hosts.reservations)),
        }
        lines = [f"{name} = {value}" for name, value in figures.items()]
        for cell in hosts.cell_health():
            out = f"left out: {cell.error}" if cell.is_left_out else "answers"
            lines.append(f"cell {cell.name} ({cell.uuid}) {out}, {cell.failures} failures")
        return "\n".join(lines)

    def _requests(self) -> Iterator[str]:
        several = [] if self._in_flight is None else self._in_flight.requests()
        yield f"{len(several)} in flight"
        for each, age_seconds in several:
            yield f"{each.method} {each.request_id or '-'}: began {age_seconds:.1f} s ago"

    def _decisions(self) -> Iterator[str]:
        manager = self._manager()
        if manager is None:
            yield "none in this process"
            return
        records = manager.recorder.records
        shown = min(DECISIONS_SHOWN, len(records))
        yield f"{shown} shown, newest first"
        for back in range(1, shown + 1):
            yield _line(records[-back])


def _line(record: DecisionRecord) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record.started_at))
    return f"{when} {record.request_id or '-'} {decision_line(record)}"
