"""The other ends of the bus: a conductor and a scheduler that keep what they are told."""

from __future__ import annotations

from typing import Any

import oslo_messaging as messaging

from conductor_stub.rpcapi import NAMESPACE


class ConductorEnd:
    """What its methods were called with, by the uuid of the first instance."""

    target = messaging.Target(namespace=NAMESPACE, version="1.23")

    def __init__(self) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.moves: dict[str, dict[str, Any]] = {}

    @messaging.expose
    def build_instances(self, context: Any, **arguments: Any) -> None:
        self.orders[arguments["instances"][0].uuid] = {"context": context, **arguments}

    @messaging.expose
    def migrate_server(self, context: Any, **arguments: Any) -> None:
        self.moves[arguments["instance"].uuid] = {"context": context, **arguments}


class SchedulerEnd:
    """The fanouts, as tuples of their kind, their host (or aggregate) and the rest."""

    target = messaging.Target(version="4.5")

    def __init__(self) -> None:
        self.news: list[tuple[str, str, Any]] = []

    @messaging.expose
    def update_instance_info(self, context: Any, host_name: str, instance_info: Any) -> None:
        assert context.is_admin
        self.news.append(("update", host_name, [each.uuid for each in instance_info]))

    @messaging.expose
    def delete_instance_info(self, context: Any, host_name: str, instance_uuid: str) -> None:
        assert context.is_admin
        self.news.append(("delete", host_name, instance_uuid))

    @messaging.expose
    def sync_instance_info(self, context: Any, host_name: str, instance_uuids: list[str]) -> None:
        assert context.is_admin
        self.news.append(("sync", host_name, instance_uuids))

    @messaging.expose
    def update_aggregates(self, context: Any, aggregates: Any) -> None:
        assert context.is_admin
        self.news += [("aggregate", each.name, sorted(each.hosts)) for each in aggregates]

    def about(self, prefix: str) -> list[tuple[str, str, Any]]:
        """What concerns hosts whose names begin with *prefix*, sorted."""
        return sorted(
            each
            for each in list(self.news)
            if each[1].startswith(prefix) or any(name.startswith(prefix) for name in each[2])
        )
