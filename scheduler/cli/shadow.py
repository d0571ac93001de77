"""``shadow``: how far a scheduler that runs beside another one agrees with it."""

from collections import Counter
from typing import Any, Final

from scheduler.cli import bus
from scheduler.cli.command import List, Table, argument
from scheduler.rpc.client import SHADOW

OF_DIFFERENCE: Final = ("at", "request_id", "instances", "decided", "outcome", "result")


class Report(bus.OnWorkers, List):
    """Say how often the shadow agrees with what became of the requests, and why not.

    With --differences, the latest requests that differ, the newest first.
    """

    nothing = "The shadow has compared no request yet."

    arguments = (
        argument("--differences", action="store_true", help="show the requests that differ"),
        *bus.worker_arguments(),
    )

    def take_action(self, parsed_args: Any) -> Table:
        """Ask the shadow of each daemon, of this host if none is named."""
        parsed_args.daemon = [each + SHADOW for each in parsed_args.daemon or [self.conf.host]]
        with self.asking(parsed_args) as daemons:
            reports = [each.result for each in daemons.all("shadow_report")]
        if parsed_args.differences:
            found = [each for report in reports for each in report["differences"]]
            header = tuple(name.replace("_", " ").capitalize() for name in OF_DIFFERENCE)
            return header, [[each[name] for name in OF_DIFFERENCE] for each in found]
        counts: Counter[str] = Counter()
        for report in reports:
            counts.update(report["results"])
        self.tell(f"note: {sum(each['waiting'] for each in reports)} requests have no outcome yet")
        return ("Result", "Requests", "Percent"), [
            (result.replace("_", " "), count, round(100 * count / max(1, counts.total()), 1))
            for result, count in counts.items()
        ]
