"""``make demo-nova``: see this scheduler at work in a whole Nova that has no hypervisors.

The status is 0 only if everything came out as it must.
"""

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.nova.cloud.scenario import Scenario, Unexpected
from tests.nova.cloud.whole import HOSTS, Cloud
from tests.servers import mariadb, programs, rabbitmq
from tests.servers.venvs import NOVA, PLACEMENT, NotAvailable
from tests.world import results

LOG_LINES = 15


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nova.cloud", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave it running until Ctrl-C")
    asked = parser.parse_args(argv)
    results.end_on_sigterm()
    # A shell that starts it in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    console = Console(soft_wrap=True)
    if packages := programs.missing_packages(rabbitmq.PROGRAMS + mariadb.PROGRAMS):
        console.print(f"Missing Debian packages: {' '.join(packages)}")
        return 1
    try:
        if not (NOVA.is_made and PLACEMENT.is_made):
            console.print("Nova and Placement are installed first, which takes a minute or two.")
        pythons = NOVA.ensure(), PLACEMENT.ensure()
        with tempfile.TemporaryDirectory(prefix="nst-cloud-") as name:
            return play(Cloud(Path(name), *pythons), console, asked.keep)
    except (NotAvailable, RuntimeError) as error:
        console.print(str(error), markup=False)
    except KeyboardInterrupt:
        console.print("Ended; nothing of it is left.")
    return 1


def play(cloud: Cloud, console: Console, keep: bool) -> int:
    """Start the cloud, take all steps, and keep it if so asked; the status."""
    began = time.monotonic()
    console.print("RabbitMQ, MariaDB, Placement, nova-api, nova-conductor, this scheduler and")
    console.print(f"nova-compute on {', '.join(HOSTS)} start, each on a port of its own …")
    with cloud:
        console.print(f"They run on one file, {cloud.config}, after {_seconds(began)}.\n")
        try:
            Scenario(cloud, console).play()
        except (AssertionError, OSError, RuntimeError, Unexpected) as error:
            console.print(f"[red]It came out otherwise:[/red] {error}", markup=True)
            tell_logs(cloud, console)
            return 1
        console.print(f"\nAll as it must be, after {_seconds(began)}.")
        if keep:
            wait(cloud, console)
    return 0


def wait(cloud: Cloud, console: Console) -> None:
    """Say how to look at it, until Ctrl-C."""
    console.print(f"Status page: {cloud.status_page}", highlight=False)
    console.print(f"nova-scheduler-manage --config-file {cloud.config} explain …", highlight=False)
    console.print("It stays until Ctrl-C.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("It ends.")


def tell_logs(cloud: Cloud, console: Console) -> None:
    """The last errors of each program."""
    for name, program in cloud.programs.items():
        if program.log_path.exists():
            lines = [each for each in program.log.splitlines() if " ERROR " in each]
            console.print(f"{name}:", *lines[-LOG_LINES:], sep="\n   ", markup=False)
    console.print(f"asked of Glance and Neutron in vain: {cloud.stand_ins.unknown}", markup=False)


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
