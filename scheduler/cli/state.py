"""``state`` and ``shadow``: what running workers know of the fleet, and of another scheduler."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from scheduler.cli import bus
from scheduler.cli.bus import Answer
from scheduler.cli.command import List, Shortened, action, argument
from scheduler.rpc.client import SHADOW

SUMMARY = {
    "host": "Daemon",
    "worker": "Worker",
    "pid": "PID",
    "version": "Version",
    "hosts": "Hosts",
    "up": "Up",
    "disabled": "Disabled",
    "instances": "Instances",
    "open_picks": "Reserved",
    "state_age_seconds": "Age s",
}
#: Workers that read at times so far apart have seen different states, and are not at fault.
OTHER_STATES_SECONDS = 2.0
OF_DIFFERENCE: Final = ("at", "request_id", "instances", "decided", "outcome", "result")


class _Table(bus.OnWorkers, List):
    """A table of what the workers answer."""

    nothing = "No worker has anything to tell."


@action(_Table, *bus.worker_arguments(), columns=tuple(SUMMARY.values()))
def show(command: _Table, args: Any) -> list[Sequence[Any]]:
    """Show what each running worker knows: hosts, instances, reservations and its age."""
    with command.asking(args) as daemons:
        answers = daemons.all("state_summary")
    ages = [answer.result.get("state_age_seconds") or 0 for answer in answers]
    if max(ages) - min(ages) > OTHER_STATES_SECONDS:
        command.tell(
            "note: each worker reads before it decides, so their numbers are of different "
            "times; `state refresh` reads them all now"
        )
    return [[answer.result.get(name) for name in SUMMARY] for answer in answers]


@action(
    _Table,
    *bus.worker_arguments(timeout_seconds=120),
    columns=(
        *("Daemon", "Worker", "Host", "Node", "Column"),
        *("Was", "Is", "Hosts read", "Repaired"),
    ),
)
def refresh(command: _Table, args: Any) -> list[Sequence[Any]]:
    """Let each running worker read everything again, and say what it had missed.

    One line for each thing that was put right.
    """
    with command.asking(args) as daemons:
        answers = daemons.all("state_refresh")
    hosts = max(answer.result["hosts"] for answer in answers)
    command.nothing = (
        f"Nothing had been missed: {len(answers)} worker(s) read {hosts} host(s) again."
    )
    return [
        (*_place(answer, each), *(answer.result[name] for name in ("hosts", "repaired")))
        for answer in answers
        for each in answer.result["repairs"]
    ]


def _place(answer: Answer, difference: dict[str, Any]) -> Sequence[Any]:
    place = (difference[name] for name in ("host", "node", "column"))
    values = (Shortened(difference[name]) for name in ("memory", "database"))
    return answer.worker.host, answer.worker.number, *place, *values


@action(
    _Table,
    argument("--differences", action="store_true", help="show the requests that differ"),
    *bus.worker_arguments(),
)
def shadow_report(command: _Table, args: Any) -> list[Sequence[Any]]:
    """Say how often the shadow agrees with what became of the requests, and why not.

    With --differences, the latest requests that differ, the newest first.
    """
    args.daemon = [each + SHADOW for each in args.daemon or [command.conf.host]]
    with command.asking(args) as daemons:
        reports = [each.result for each in daemons.all("shadow_report")]
    if args.differences:
        found = [each for report in reports for each in report["differences"]]
        command.nothing = "No request differs."
        command.columns = tuple(name.replace("_", " ").capitalize() for name in OF_DIFFERENCE)
        return [[each[name] for name in OF_DIFFERENCE] for each in found]
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report["results"])
    command.tell(f"note: {sum(each['waiting'] for each in reports)} requests have no outcome yet")
    command.columns = ("Result", "Requests", "Percent")
    return [
        (result.replace("_", " "), count, round(100 * count / max(1, counts.total()), 1))
        for result, count in counts.items()
    ]
