"""``what-if``: a request decided by a running worker, as things are and with changes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

from scheduler import errors, exit_codes
from scheduler.cli import command, request_options, what_if_rendering, workers
from scheduler.cli.workers import Ask, Daemons

_LIKE = "like:"


class WhatIf(workers.OnWorkers, command.Base):
    """Decide a request twice on the state of a running worker: as things are, and with changes.

    Nothing is kept, claimed or told.  The request is one that a worker remembers, or one made from
    options or a file; then the first worker that answers decides.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The request, what is to be different, and how to show it."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "name",
            metavar="REQUEST_ID|INSTANCE_UUID",
            nargs="?",
            help="a request that was decided, as long as a worker remembers it",
        )
        request_options.add_options(parser)
        changes = parser.add_argument_group("what is to be different")
        for option, metavar, text in (
            ("--enable", "FILTER", "run this filter, too, after the others"),
            ("--disable", "FILTER", "do not run this filter"),
            ("--set", "OPTION=VALUE", "another value of an option, or of group.option"),
            ("--without-host", "HOST", "as if there was no such host"),
        ):
            changes.add_argument(
                option,
                action="append",
                default=[],
                metavar=metavar,
                help=f"{text}; may be repeated",
            )
        changes.add_argument(
            "--add-hosts",
            action="append",
            default=[],
            metavar="PROFILE",
            help="more hosts: a YAML file, or like:HOST:COUNT for empty ones with the hardware of "
            "a host there is; may be repeated",
        )
        parser.add_argument("--json", action="store_true", help="print the same as JSON")
        self.add_worker_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Ask, and print both decisions."""
        has_options = request_options.is_given(parsed_args)
        if bool(parsed_args.name) == has_options:
            reason = "give it, or else options of a request: see --flavor, --flavor-ram, --request"
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
            arguments["request"] = request_options.request_of(
                parsed_args, self.conf, self.databases.api
            )
        with self.asking(parsed_args) as daemons:
            answer = (
                daemons.first("what_if", **arguments)
                if has_options
                else _of_whoever_remembers(daemons, parsed_args.name, arguments)
            )
        if parsed_args.json:
            self.app.stdout.write(json.dumps(answer, indent=2) + "\n")
        else:
            what_if_rendering.show(self.console(), answer)
        return exit_codes.OK


def _of_whoever_remembers(daemons: Daemons, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the worker answers that decided the request latest."""

    def decided_at(ask: Ask) -> str:
        return max((str(each["started_at"]) for each in ask("explain", name=name)), default="")

    found = [each for each in daemons.each(decided_at) if each.result]
    if not found:
        raise errors.InvalidRequest(
            field=name, reason="no running worker remembers a decision on this request or instance"
        )
    latest = max(found, key=lambda each: each.result)
    answer: dict[str, Any] = daemons.one(latest.worker, "what_if", remembered=name, **arguments)
    return answer


def profiles_of(text: str) -> list[dict[str, Any]]:
    """The profiles that an argument of ``--add-hosts`` means; InvalidRequest if it is none."""
    field = f"--add-hosts {text}"
    if text.startswith(_LIKE):
        host, _colon, count = text[len(_LIKE) :].rpartition(":")
        if not host or not count.isdigit():
            raise errors.InvalidRequest(field=field, reason="not of the form like:HOST:COUNT")
        return [{"like": host, "count": int(count)}]
    try:
        found = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise errors.InvalidRequest(field=field, reason=reason) from error
    profiles = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in profiles):
        raise errors.InvalidRequest(field=field, reason="not a mapping, or a list of mappings")
    return profiles
