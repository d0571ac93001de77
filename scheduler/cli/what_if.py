"""``what-if``: a request decided by a running worker, as things are and with changes."""

import argparse
import functools
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from oslo_config import cfg
from rich import box
from rich.table import Table

from scheduler import errors, numa, objects, pci, semantics
from scheduler.cli import bus, command
from scheduler.cli.bus import Daemons, Worker
from scheduler.cli.command import Text, argument
from scheduler.conf import mistakes
from scheduler.db import flavors
from scheduler.db.databases import Databases
from scheduler.explain.rendering import Paper
from scheduler.rpc.context import ObjectSerializer

_LIKE = "like:"
_MOST_SERVERS: Final = 20
Answered = Mapping[str, Any]

_CHANGES = "what is to be different"
_of_request = functools.partial(argument, group="a request that nobody made")
_SPEC: Final = "a RequestSpec as JSON, in the form of the message bus"


class WhatIf(bus.OnWorkers, Text):
    """Decide a request twice on the state of a running worker: as things are, and with changes.

    Nothing is kept, claimed or sent.  The request is one that a worker remembers, or one made from
    options or a file; then the first worker that answers decides.
    """

    arguments = (
        argument(
            "name",
            metavar="REQUEST_ID|INSTANCE_UUID",
            nargs="?",
            help="a request that was decided, as long as a worker remembers it",
        ),
        _of_request("--request", type=Path, metavar="FILE", help=_SPEC),
        _of_request("--flavor", metavar="NAME", help="a flavor of the database"),
        _of_request("--az", metavar="ZONE", help="availability zone"),
        _of_request("--project", metavar="ID", help="project that asks"),
        _of_request("--count", type=command.positive, metavar="N", help="how many servers"),
        *(
            command.repeated(*words, group=_CHANGES)
            for words in (
                ("--enable", "FILTER", "run this filter, too, after the others"),
                ("--disable", "FILTER", "do not run this filter"),
                ("--set", "OPTION=VALUE", "another value of an option, or of group.option"),
                ("--without-host", "HOST", "as if there was no such host"),
                (
                    "--add-hosts",
                    "PROFILE",
                    "more hosts: a YAML file, or like:HOST:COUNT for empty ones with the hardware "
                    "of a host there is",
                ),
            )
        ),
        *bus.worker_arguments(),
    )

    def act(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        name, options = parsed_args.name, ("request", "flavor", "az", "project", "count")
        has_options = any(getattr(parsed_args, option) for option in options)
        if bool(name) == has_options:
            reason = "give it, or else options of a request: see --flavor, --request"
            raise errors.InvalidRequest(field="REQUEST_ID", reason=reason)
        arguments = {
            "enable": parsed_args.enable,
            "disable": parsed_args.disable,
            "settings": parsed_args.set,
            "without_hosts": parsed_args.without_host,
            "add_hosts": [each for text in parsed_args.add_hosts for each in profiles_of(text)],
            "max_seconds": parsed_args.timeout * 0.9,
        }
        if has_options:
            arguments["request"] = request_of(parsed_args, self.conf, self.databases)
        else:
            arguments["remembered"] = name
        with self.asking(parsed_args) as daemons:
            # The first of all workers has just said that it is there.
            worker = daemons.workers()[0] if has_options else _who_remembers(daemons, name)
            answer: dict[str, Any] = daemons.one(worker, "what_if", **arguments)
        return answer

    def show(self, found: Any) -> None:
        """Print it; the first line says whether the changes matter."""
        show(self.console(), found)


def _who_remembers(daemons: Daemons, name: str) -> Worker:
    found = [each for each in daemons.all("explain", name=name) if each.result]
    if not found:
        raise errors.InvalidRequest(
            field=name, reason="no running worker remembers a decision on this request or instance"
        )
    return max(found, key=lambda each: max(str(one["started_at"]) for one in each.result)).worker


def profiles_of(text: str) -> list[dict[str, Any]]:
    """The profiles that an argument of ``--add-hosts`` means; InvalidRequest if it is none."""
    field = f"--add-hosts {text}"
    if text.startswith(_LIKE):
        host, _colon, count = text[len(_LIKE) :].rpartition(":")
        if not host or not re.fullmatch(r"\d{1,9}", count):
            raise errors.InvalidRequest(field=field, reason="not of the form like:HOST:COUNT")
        return [{"like": host, "count": int(count)}]
    try:
        found = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = f"{mistakes.plain(str(error))}; give a YAML file, or {_LIKE}HOST:COUNT"
        raise errors.InvalidRequest(field=field, reason=reason) from error
    profiles = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in profiles):
        raise errors.InvalidRequest(field=field, reason="not a mapping, or a list of mappings")
    return profiles


def request_of(
    parsed: argparse.Namespace, conf: cfg.ConfigOpts, databases: Databases
) -> objects.RequestSpec:
    """The request; InvalidRequest naming what is wrong with it, FlavorNotFound for the flavor."""
    if not parsed.request:
        if parsed.flavor is None:
            raise errors.InvalidRequest(field="--flavor", reason="missing, without --request")
        spec = request_for(conf, databases, parsed.flavor, parsed.az, parsed.project)
    elif any((parsed.flavor, parsed.az, parsed.project)):
        raise errors.InvalidRequest(field="--request", reason="only --count goes with it")
    else:
        spec = _from_file(parsed.request)
    if parsed.count is not None:
        spec.num_instances = parsed.count
    if not spec.is_set("instance_uuid"):
        spec.instance_uuid = str(uuid.uuid4())
    return spec


def request_for(
    conf: Any, databases: Databases, flavor: str, zone: str | None, project: str | None
) -> objects.RequestSpec:
    """A request for one server of the *flavor* of that name; FlavorNotFound if there is none."""
    with databases.api.read() as connection:
        found = flavors.get(connection, "name", flavor)
    return objects.RequestSpec(
        flavor=found,
        availability_zone=zone,
        project_id=project,
        num_instances=1,
        numa_topology=numa.constraints(found, None, semantics.from_conf(conf).numa),
        pci_requests=pci.requests_of_flavor(found, None, conf.pci.alias),
    )


def _from_file(path: Path) -> objects.RequestSpec:
    field = f"--request {path}"
    with errors.as_invalid(field, OSError, ValueError):
        content = json.loads(path.read_text(encoding="utf-8"))
    found = ObjectSerializer().deserialize_entity(None, content)
    if not isinstance(found, objects.RequestSpec):
        raise errors.InvalidRequest(field=field, reason="no RequestSpec in the form of the bus")
    return found


def show(console: Paper, answer: Answered) -> None:
    """Print an answer of ``what_if``; the first line says whether the changes matter."""
    before, after = answer["before"], answer["after"]
    console.sentence(_verdict(answer))
    age = answer["state_age_seconds"]
    console.sentence(
        f"  decided by worker {answer['worker']} of {answer['host']}, on a state "
        f"{'of unknown age' if age is None else f'{age:.1f} s old'}; nothing is kept"
    )
    for note in answer["notes"]:
        console.sentence(f"  {note}")
    console.print(_side_by_side("", _places(before), _places(after)))
    console.print(_side_by_side("hosts removed", _removals(before), _removals(after)))


def _verdict(answer: Answered) -> str:
    before, after = answer["before"], answer["after"]
    if _outcome(before) == _outcome(after):
        if (before["filters"], before["alternates"]) == (after["filters"], after["alternates"]):
            return f"No change: {_outcome(after)}"
        return f"The same hosts, found in another way: {_outcome(after)}"
    return f"Now: {_outcome(before)}. Then: {_outcome(after)}."


def _outcome(decision: Answered) -> str:
    if decision["outcome"] != "selected":
        cause = decision.get("cause") or decision["outcome"]
        return str(cause).rstrip(".")
    hosts = [each["host"] for each in decision["chosen"]]
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(hosts[:3]) + more


def _side_by_side(title: str, old: Mapping[str, str], new: Mapping[str, str]) -> Table:
    table = Table(title, "as things are", "with the changes", box=box.SIMPLE)
    for name in dict.fromkeys((*max(old, new, key=len), *old, *new)):
        was, then = old.get(name, "-"), new.get(name, "-")
        table.add_row(name, was, then, style=None if was == then else "bold")
    return table


def _places(decision: Answered) -> dict[str, str]:
    """Numbers of hosts, where the servers go, and the alternates of the first."""
    top = {each["host"]: f" (weight {each['total']:.4g})" for each in decision["top"][:1]}
    chosen = decision["chosen"] if decision["outcome"] == "selected" else [{"host": "no host"}]
    servers = [each["host"] + top.pop(each["host"], "") for each in chosen]
    first: Sequence[Answered] = decision["alternates"][0] if decision["alternates"] else []
    return {
        **{f"hosts: {name}": str(decision[name]) for name in ("fleet", "considered", "passed")},
        **{f"server {n}": text for n, text in enumerate(servers[:_MOST_SERVERS], 1)},
        **({"...": ""} if len(servers) > _MOST_SERVERS else {}),
        "alternates": ", ".join(each["host"] for each in first) or "-",
    }


def _removals(outcome: Answered) -> dict[str, str]:
    """By cause how many hosts fell out, filters that removed none among them."""
    found = {f"before filters: {k}": str(n) for k, n in outcome["never_evaluated"].items()}
    for each in outcome["filters"]:
        found[each["name"]] = str(each["start"] - each["end"])
        for reason, count in each["removed"].items():
            found[f"  {each['name']} {reason}"] = str(count)
    return found
