"""Soak, print tables and a verdict; the status is 1 if anything grows."""

import contextlib
import dataclasses
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scheduler import concurrency
from tests.soak.plan import ENGINE, Plan
from tests.world import results


def main(argv: Sequence[str] | None = None) -> int:
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.ERROR)
    results.end_on_sigterm()
    plan = results.parse(Plan, "python -m tests.soak", __doc__, argv)
    if not (plan.minutes or plan.decisions):
        sys.exit("one of --minutes and --decisions must say when it is over")
    with contextlib.ExitStack() as stack:
        folder = plan.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="nst-soak-"))
        Path(folder).mkdir(parents=True, exist_ok=True)
        text, grows = _run(plan, Path(folder), stack)
    results.publish(text)
    return 1 if grows else 0


def _run(plan: Plan, folder: Path, stack: contextlib.ExitStack) -> tuple[str, bool]:
    """What :func:`verdict.report` says of the run."""
    from tests.servers.mariadb import MariaDB  # noqa: PLC0415 - imports oslo.messaging
    from tests.servers.rabbitmq import RabbitMQ  # noqa: PLC0415
    from tests.soak import bus, engine, look, verdict  # noqa: PLC0415

    server = stack.enter_context(MariaDB())
    url = server.url(server.create_database())
    if plan.form == ENGINE:
        kept = look.Kept(folder / "engine.jsonl")
        done = engine.run(plan, url, kept)
        title = "In process, with a clock that is moved on"
        return verdict.report(title, done, [("engine", kept)], engine.scale(plan))
    rabbitmq = stack.enter_context(RabbitMQ())
    done, found = bus.run(plan, folder, rabbitmq, url)
    scale = dataclasses.replace(bus.SCALE, allowance=plan.allowance)
    return verdict.report("Over RabbitMQ and MariaDB, in real time", done, found, scale)


if __name__ == "__main__":
    sys.exit(main())
