"""``explain``: why a server went where it went, or nowhere."""

import argparse
import shlex
from typing import Any

from scheduler import errors
from scheduler.cli import bus
from scheduler.cli.command import Text, argument
from scheduler.cli.plan import moves_for_room
from scheduler.db import decisions, migration
from scheduler.db.database import FAILURES
from scheduler.explain import rendering


class Explain(bus.OnWorkers, Text):
    """Explain why a server went where it went, or nowhere.

    Asks every running worker of the scheduler what it remembers of the request or the instance.
    The first line says what decided the matter.
    """

    arguments = (
        argument(
            "name", metavar="REQUEST_ID|INSTANCE_UUID", help="a request id or an instance's uuid"
        ),
        argument(
            "--host",
            help="say what became of this host: where it fell out, or its rank and weights",
        ),
        *bus.worker_arguments(),
    )

    def act(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        found = self._found(parsed_args)
        found.sort(key=lambda record: str(record["started_at"]), reverse=True)
        if not found:
            raise errors.InvalidRequest(
                field=parsed_args.name,
                reason="no running worker remembers a decision on this request or instance, and "
                "the database has none; give the id of a request or the uuid of a server",
            )
        if moves := moves_for_room(self.conf, self.databases, found[0]):
            found[0]["moves_would_make_room"] = moves
        return found

    def show(self, found: Any) -> None:
        console = self.console()
        for place, record in enumerate(found):
            if place:
                console.rule()
            rendering.show(console, record)
            if moves := record.get("moves_would_make_room"):
                words = [self.app.NAME, "plan", "fit", "--flavor", record["flavor"]]
                words += ["--count", str(record["num_instances"])]
                for option, value in (("--az", record["zone"]), ("--project", record["project"])):
                    words += [option, value] if value else []
                self.app.stdout.write(f"{moves} move(s) would make room: {shlex.join(words)}\n")

    def _found(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Records that workers remember; else those in the database."""
        try:
            with self.asking(parsed_args) as daemons:
                answers = daemons.all("explain", name=parsed_args.name, on_host=parsed_args.host)
        except (errors.NovaException, *bus.UNDELIVERED) as error:
            stored = self._stored(parsed_args)
            if not stored:
                raise
            self.tell(f"warning: {error}")
            return stored
        found = [
            {**record, "worker": str(answer.worker)}
            for answer in answers
            for record in answer.result
        ]
        return found or self._stored(parsed_args)

    def _stored(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        try:
            if migration.version(self.database) is None:
                return []
            with self.database.read() as connection:
                found = decisions.find(connection, parsed_args.name)
        except FAILURES as error:
            self.tell(f"warning: {self.database.unusable(error)}")
            return []
        if parsed_args.host is not None:
            self.tell("warning: the database has nothing on single hosts")
        return [{**record, "worker": "the database"} for record in found]
