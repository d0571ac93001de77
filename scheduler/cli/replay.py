"""``replay``: a workload decided anew on a fleet in memory, and a report of that."""

import argparse
import functools
import math
import random
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg
from rich.console import Console
from rich.table import Column, Table

from scheduler import conf as options
from scheduler import errors, objects
from scheduler.cli import command
from scheduler.cli.command import argument, repeated
from scheduler.cli.what_if import profiles_of
from scheduler.conf import check, filter_scheduler
from scheduler.db import layout, migration
from scheduler.explain.answer import to_dict
from scheduler.explain.rendering import Paper
from scheduler.introspection import hypothetical_hosts
from scheduler.introspection.what_if import Overlay, values_of
from scheduler.recording.arrivals import files_of, is_recording, read_arrivals, recorded_fleet
from scheduler.replay import azure, database_fleet, report, sizing
from scheduler.replay.run import DAY, HOUR, Run, compare
from scheduler.replay.virtual_fleet import VirtualFleet
from scheduler.replay.workload import Workload, read_csv

CONFIGURED: Final = "configured"
#: Those of more than a year of hours would take longer than the requests.
_MOST_SAMPLES: Final = 10_000
_FLEET, _WORKLOAD, _SIZE = "the fleet", "the workload", "sizes"
_of_fleet, _of_workload, _of_size = (
    functools.partial(argument, group=each) for each in (_FLEET, _WORKLOAD, _SIZE)
)
_of_time = functools.partial(_of_workload, type=command.amount)
_WORKLOADS: Final = (
    "a CSV file (arrival, lifetime, flavor, count, group, zone), the folder of the packed Azure "
    "trace, or files of a recording, or their folder"
)
_AGAINST: Final = "another configuration: a file, or OPTION=VALUE, more of them after semicolons"
_DESCRIBED: Final = "empty hosts, for example '2000 × 64 cores/256 GiB, 3 zones'"
_REPORTED: Final = "the hosts of the database, with what they report"
_SCALED: Final = "so many times the hosts; which ones is drawn"
_WARM_UP: Final = "hours before refusals count, and means begin"


class Replay(command.Text):
    """Decide a workload anew on a fleet in memory, in virtual time, with the daemon's own engine.

    Prints the measures of the fleet over time and at its end, and what was refused.  The same
    input gives the same report to the byte.
    """

    arguments = (
        argument("workload", metavar="WORKLOAD", type=Path, nargs="+", help=_WORKLOADS),
        command.PAGE,
        repeated("--set", "OPTION=VALUE", "another value of an option, in all configurations"),
        repeated("--against", "OTHER", _AGAINST),
        argument("--seed", type=int, default=1, metavar="N", help="for what is drawn (default 1)"),
        _of_fleet("--fleet", metavar="TEXT", help=_DESCRIBED),
        _of_fleet("--fleet-from-database", action="store_true", help=_REPORTED),
        repeated("--without-host", "HOST", "as if there was no such host", group=_FLEET),
        repeated(
            "--add-hosts", "PROFILE", "more hosts: a YAML file, or like:HOST:COUNT", group=_FLEET
        ),
        _of_fleet("--scale-hosts", type=float, default=1.0, metavar="FACTOR", help=_SCALED),
        _of_time("--from-day", default=0.0, metavar="DAY", help="begin there"),
        _of_time("--days", default=math.inf, metavar="DAYS", help="so many days"),
        _of_time("--warm-up", default=0.0, metavar="HOURS", help=_WARM_UP),
        _of_workload("--lenient", action="store_true", help="leave out what cannot be read"),
        _of_size("--compact", action="store_true", help="find the smallest fleet that holds it"),
        _of_size("--inflate", action="store_true", help="find how many times the workload fits"),
        _of_size("--jobs", type=command.positive, default=1, metavar="N", help="processes"),
    )

    def act(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        parsed_args.workload = files_of(parsed_args.workload)
        workload = read(parsed_args)
        confs = self._confs(parsed_args)
        fleets = {name: self._fleet(conf, parsed_args) for name, conf in confs.items()}
        whole = next(iter(fleets.values())).copy()
        if parsed_args.fleet:
            _require_fits(whole.copy(), workload, lenient=parsed_args.lenient)
        new_run = functools.partial(
            Run,
            seed=parsed_args.seed,
            warm_up_seconds=parsed_args.warm_up * HOUR,
            events=workload.events,
        )
        every = max(HOUR, workload.lasts / _MOST_SAMPLES)
        runs = {name: new_run(fleet, sample_seconds=every) for name, fleet in fleets.items()}
        began = time.perf_counter()
        differences = compare(runs, command.tracked(workload.arrivals, "Replaying"))
        seconds = time.perf_counter() - began
        document = {
            "title": "Replay",
            "fleet": parsed_args.fleet or "as it was read",
            "seed": parsed_args.seed,
            "settings": {name: _settings(name, parsed_args) for name in confs},
            "workload": workload.source,
            "notes": workload.notes,
            "configurations": {name: run.result() for name, run in runs.items()},
            "differences": differences,
        }
        refused = next(iter(runs.values())).total("requests_refused")
        subject = sizing.Subject(whole, workload, refused, parsed_args.seed, new_run)
        document |= _sizes(subject, parsed_args)
        Console(stderr=True).print(_speed(runs.values(), workload.lasts, seconds), highlight=False)
        if parsed_args.output is not None:
            self.write_page(parsed_args.output, report.to_html(document))
        return document

    def _confs(self, parsed: argparse.Namespace) -> dict[str, Any]:
        common = values_of(parsed.set)
        found = {CONFIGURED: Overlay.from_values(self.conf, common)}
        for text in parsed.against:
            if "=" not in text or Path(text).is_file():
                name, conf = Path(text).stem, Overlay.from_values(_read_conf(text), common)
            else:
                name = text
                values = values_of(text.split(";"), "--against")
                conf = Overlay.from_values(self.conf, {**common, **values})
            if name in found:
                raise errors.InvalidRequest(field=f"--against {text}", reason="named twice")
            found[name] = conf
        return found

    def _fleet(self, conf: Any, parsed: argparse.Namespace) -> VirtualFleet:
        if parsed.fleet and not parsed.fleet_from_database:
            fleet = VirtualFleet.from_description(conf, parsed.fleet)
        elif parsed.fleet_from_database and not parsed.fleet:
            migration.check_ready(self.database, layout.NEEDED_TABLES)
            fleet, _left_out = database_fleet.read(conf, self.databases)
        elif is_recording(parsed.workload[0]) and not parsed.fleet:
            fleet = recorded_fleet(conf, parsed.workload)
        else:
            reason = "describe one, or take it --fleet-from-database"
            raise errors.InvalidRequest(field="--fleet", reason=reason)
        hypothetical_hosts.without(fleet, parsed.without_host)
        profiles = [each for text in parsed.add_hosts for each in profiles_of(text)]
        profiles += _scale(fleet, parsed.scale_hosts, parsed.seed)
        hypothetical_hosts.add(fleet, profiles)
        return fleet

    def show(self, found: Any) -> None:
        results = found["configurations"]
        table = Table(Column(no_wrap=True))
        for head in report.measure_heads(results):
            table.add_column(head, justify="right", overflow="fold")
        for row in report.measure_rows(results):
            table.add_row(*row)
        console = Paper(file=self.app.stdout, highlight=False, markup=False)
        console.print(table)
        for note in found["notes"]:
            console.print(note, soft_wrap=True)
        for each in found["differences"]:
            console.print(report.difference_sentence(each))
        for key, title, unit in report.SIZES:
            if (sizes := found.get(key)) is not None:
                console.print(f"{title}: {report.size_text(key, sizes['median'])} {unit}")


def _speed(runs: Collection[Run], lasts: float, seconds: float) -> str:
    """Sentence on how quickly *runs* of a workload that *lasts* so long were decided."""
    decisions = sum(run.decisions for run in runs)
    return (
        f"{decisions:,} decisions in {seconds:.1f} s: {decisions / seconds:,.0f} a second, "
        f"{lasts * len(runs) / seconds:,.0f} × real time"
    )


def read(parsed: argparse.Namespace) -> Workload:
    """The workload that the command line names; errors name file and line."""
    (path, *others), faults = parsed.workload, errors.Faults(lenient=parsed.lenient)
    if is_recording(path):
        workload = read_arrivals(parsed.workload, faults)
    elif others or (path.is_dir() and not (path / azure.FLAVORS).exists()):
        reason = "neither files of a recording, nor one CSV file or folder of the packed trace"
        raise errors.InvalidRequest(field=" ".join(map(str, parsed.workload)), reason=reason)
    elif path.is_dir():
        workload = azure.read_azure(path, parsed.seed, faults)
    else:
        workload = read_csv(path, faults)
    begin = parsed.from_day * DAY
    part = workload.between(begin, begin + parsed.days * DAY)
    if not part.arrivals:
        reason = f"no arrivals are left of {workload.lasts / DAY:.3g} days"
        raise errors.InvalidRequest(field="--from-day, --days", reason=reason)
    if parsed.warm_up * HOUR > part.lasts:
        reason = f"longer than the workload, which lasts {part.lasts / HOUR:.3g} hours"
        raise errors.InvalidRequest(field="--warm-up", reason=reason)
    return part


def _require_fits(fleet: VirtualFleet, workload: Workload, *, lenient: bool) -> None:
    """Raise InvalidRequest for a flavor that no host of the empty *fleet* fits, or note it."""
    first = {each.flavor_name: each for each in reversed(workload.arrivals)}
    for name, arrival in sorted(first.items()):
        spec = objects.RequestSpec(flavor=arrival.flavor, num_instances=1)
        outcome = fleet.place(spec, wants_detail=True)
        if not outcome.is_refused:
            fleet.remove(outcome.servers)
            continue
        reason = f"flavor {name}: {to_dict(outcome.record)['cause']}"
        place = arrival.place or f"{workload.source}, {arrival.name}"
        if not lenient:
            raise errors.InvalidRequest(field=place, reason=reason)
        workload.notes.append(f"{place}: {reason}")


def _read_conf(path: str) -> cfg.ConfigOpts:
    try:
        Path(path).read_bytes()
        conf = options.detached(files=[path])
        filter_scheduler.set_default_chain(conf)
        check.validate(conf)
    except OSError as error:
        reason = f"the file cannot be read: {error.strerror}"
        raise errors.InvalidRequest(field=f"--against {path}", reason=reason) from error
    except cfg.Error as error:
        raise errors.InvalidRequest(field=f"--against {path}", reason=str(error)) from error
    return conf


def _scale(fleet: VirtualFleet, factor: float, seed: int) -> list[dict[str, Any]]:
    """Take hosts away for a *factor* below 1; profiles of more of them for one above."""
    hosts = sorted(fleet.table.rows_of_host)
    if not factor > 0 or len(hosts) * (factor - 1) > hypothetical_hosts.MOST_ADDED:
        raise errors.InvalidRequest(field="--scale-hosts", reason=f"{factor:g} is out of bounds")
    random.Random(seed).shuffle(hosts)
    wanted = max(min(1, len(hosts)), round(len(hosts) * factor))
    for host in hosts[wanted:]:
        fleet.take_out(host)
    return [{"like": hosts[n % len(hosts)]} for n in range(wanted - len(hosts))]


def _settings(name: str, parsed: argparse.Namespace) -> list[str]:
    own = [] if name == CONFIGURED else [name if "=" in name else f"the file {name}"]
    return [*parsed.set, *own]


def _sizes(subject: sizing.Subject, parsed: argparse.Namespace) -> dict[str, Any]:
    found = {}
    for name, work, count, bound in (
        ("compact", sizing.compact, sizing.COMPACT_TRIALS, math.inf),
        ("inflate", sizing.inflate, sizing.INFLATE_TRIALS, sizing.MOST_TIMES),
    ):
        if getattr(parsed, name):
            results = sizing.trials(work, subject, count, parsed.jobs)
            tracked = command.tracked(results, f"Trials ({name})", count)
            found[name] = sizing.distribution(list(tracked), bound)
    return found
