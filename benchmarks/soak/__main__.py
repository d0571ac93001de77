"""Soak, print tables and a verdict; the status is 1 if anything grows."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.soak.end import End
from benchmarks.soak.plan import BOTH, BUS, ENGINE, Plan
from scheduler import concurrency

LOG = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run; see ``--help``."""
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.ERROR)
    # A run that is told to end takes its servers along.
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(128 + signal.SIGTERM))
    plan = _plan(argv)
    with contextlib.ExitStack() as stack:
        folder = plan.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="nst-soak-"))
        Path(folder).mkdir(parents=True, exist_ok=True)
        return _Soak(plan, Path(folder), stack).run()


def _plan(argv: Sequence[str] | None) -> Plan:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for each in dataclasses.fields(Plan):
        parser.add_argument(
            "--" + each.name.replace("_", "-"),
            type=type(each.default),
            default=each.default,
            choices=each.metadata.get("choices"),
            help=each.metadata["help"],
        )
    plan = Plan(**vars(parser.parse_args(argv)))
    if not (plan.minutes or plan.decisions):
        parser.error("one of --minutes and --decisions must say when it is over")
    return plan


class _Soak:
    """Starts the forms, waits for their ends, and tells."""

    def __init__(self, plan: Plan, folder: Path, stack: contextlib.ExitStack) -> None:
        self._plan, self._folder, self._stack = plan, folder, stack
        self._end = End(plan)

    def run(self) -> int:
        """The exit status."""
        from benchmarks.soak import told  # noqa: PLC0415 - imports oslo.messaging

        plan, forms = self._plan, []
        engine = self._begin_engine() if plan.form == BOTH else None
        if plan.form in (BOTH, BUS):
            forms.append(self._bus())
        if plan.form == ENGINE:
            forms.append(self._engine())
        if engine is not None:
            if engine.wait() not in (0, 1):
                raise RuntimeError(f"the engine ended with {engine.returncode}")
            forms.append(told.Form.read(self._folder / ENGINE))
        sys.stdout.write(told.render(forms) + "\n")
        return 1 if any(form.grows for form in forms) else 0

    def _begin_engine(self) -> subprocess.Popen[bytes]:
        values = {**dataclasses.asdict(self._plan), "form": ENGINE}
        values["decisions"] = round(self._plan.decisions * (1 - self._plan.share_on_bus))
        values["keep"] = str(self._folder / ENGINE)
        values["engine_database"] = self._plan.engine_database or self._database()
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak", *arguments], stdout=subprocess.DEVNULL
        )
        self._stack.callback(_end, process)
        return process

    def _engine(self) -> Any:
        from benchmarks.soak import engine, look, told  # noqa: PLC0415

        url = self._plan.engine_database or self._database()
        _give_way(self._plan.nice)
        kept = look.Kept(self._folder / "engine.jsonl")
        done = engine.run(self._plan, url, kept, self._end)
        scale = engine.scale(self._plan)
        title = "In process, with a clock that is moved on"
        form = told.Form.of(title, done, [("engine", kept)], scale)
        form.write(self._folder)
        return form

    def _bus(self) -> Any:
        from benchmarks.soak import bus, told  # noqa: PLC0415
        from tests.servers.rabbitmq import RabbitMQ  # noqa: PLC0415

        rabbitmq = self._stack.enter_context(RabbitMQ())
        decisions = round(self._plan.decisions * self._plan.share_on_bus)
        folder = self._folder / BUS
        folder.mkdir(exist_ok=True)
        url = self._database()
        _give_way(self._plan.nice)
        done, kept = bus.run(self._plan, folder, rabbitmq, url, self._end.after(decisions))
        scale = dataclasses.replace(bus.SCALE, allowance=self._plan.allowance)
        form = told.Form.of("Over RabbitMQ and MariaDB, in real time", done, kept, scale)
        form.write(folder)
        return form

    def _database(self) -> str:
        from tests.servers.mariadb import MariaDB  # noqa: PLC0415

        server = self._stack.enter_context(MariaDB())
        return server.url(server.create_database())


def _give_way(nice: int) -> None:
    """Have this process and its servers, each thread of them, work only when others do not.

    What they start from then on does so, too.  A kernel that shares out the processor by sessions
    first is told of those that are theirs alone; this process gets one for that.
    """
    if not nice:
        return
    own = psutil.Process()
    with contextlib.suppress(PermissionError):  # it leads a group, of which others may be members
        os.setsid()
    for process in (own, *own.children(recursive=True)):
        session = Path(f"/proc/{process.pid}/autogroup")
        try:
            for thread in process.threads():
                os.setpriority(os.PRIO_PROCESS, thread.id, nice)
            if session.exists() and os.getsid(process.pid) == process.pid:
                session.write_text(str(nice), encoding="ascii")
        except (OSError, psutil.Error) as error:  # it works all the same, but takes its share
            LOG.warning("%s: %s", session, error)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
