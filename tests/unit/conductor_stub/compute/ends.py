"""The other ends of a compute host's clients, without a bus."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from conductor_stub.alternates import Claims
from conductor_stub.compute.endpoints import ComputeEndpoint
from conductor_stub.compute.host import Clients, Host
from conductor_stub.records import MoveRequest, Order
from scheduler.rpc.context import RequestContext


class Ends(Clients):
    """Keeps what conductor and schedulers are told; *hosts* do at once what they are told."""

    def __init__(self, conf: cfg.ConfigOpts, hosts: dict[str, Host]) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.moves: dict[str, dict[str, Any]] = {}
        #: The fanouts, as tuples of their kind, their host (or aggregate) and the rest.
        self.news: list[tuple[str, str, Any]] = []
        self.conductor = self.scheduler = self.compute = self  # type: ignore[assignment]
        self.claims = Claims()
        self._hosts = hosts
        self._tells = conf.filter_scheduler.track_instance_changes

    def build_instances(self, order: Order, instances: Any, properties: Any, **later: Any) -> None:
        kept = {"instances": instances, "filter_properties": properties, **vars(order), **later}
        self.orders[instances[0].uuid] = kept

    def move_elsewhere(self, request: MoveRequest) -> None:
        kept = {**request.arguments(), "host_list": request.host_list}
        self.moves[request.instance.uuid] = kept

    def cast(self, context: RequestContext, host: str, method: str, **arguments: Any) -> None:
        getattr(ComputeEndpoint(self._hosts[host], "6.5"), method)(context, **arguments)

    def terminate_instance(self, context: RequestContext, instance: Any, bdms: Any) -> None:
        self.cast(context, instance.host, "terminate_instance", instance=instance, bdms=bdms)

    def fanout(self, context: RequestContext, method: str, **told: Any) -> None:
        assert context.is_admin
        if method == "update_aggregates":
            self.news += [("aggregate", a.name, sorted(a.hosts)) for a in told["aggregates"]]
        elif method == "update_instance_info":
            self.news.append(("update", told["host_name"], [i.uuid for i in told["instance_info"]]))
        else:
            host, rest = told.values()
            self.news.append((method.partition("_")[0], host, rest))
