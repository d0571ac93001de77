"""Routed networks: the aggregates of the segments that a server's ports may be on.

Neutron knows the segments of ports and networks.  It makes a provider of each segment in Placement,
in an aggregate with the hosts that are on the segment.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, Self

from keystoneauth1.exceptions import ClientException
from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors
from scheduler.claims.placement.client import (
    PlacementClient,
    Refused,
    Requester,
    ServiceClient,
    Unavailable,
)
from scheduler.claims.placement.connections import adapter_from_conf
from scheduler.conf import claims as conf_claims

LOG = logging.getLogger(__name__)

OPTION: Final = "query_placement_for_routed_network_aggregates"


class RoutedNetworks:
    """Asks *neutron* for segments and *placement* for their aggregates."""

    def __init__(self, neutron: ServiceClient, placement: PlacementClient) -> None:
        self._neutron, self._placement = neutron, placement

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, placement: PlacementClient) -> Self | None:
        """None where no segments are to be asked for; raises ConfigurationError."""
        if not conf.scheduler[OPTION]:
            return None
        name = conf_claims.NEUTRON_NAME
        adapter = adapter_from_conf(conf, name, f"[scheduler] {OPTION} = true")
        timeout = conf[name].timeout or conf_claims.TIMEOUT_SECONDS
        neutron = ServiceClient(adapter, timeout, retries=conf[name].http_retries)
        return cls(neutron, placement)

    def aggregates(self, spec: Any, requester: Requester) -> Iterator[list[str]]:
        """Per routed network of *spec* the aggregates, in one of which a host must be.

        Raises NoValidHost where a segment has none.  Without an answer of Neutron it is an error of
        keystoneauth, as of Nova's client, or a NovaException.
        """
        asking = replace(requester, calls=[])  # which are those to Placement
        for network in spec.requested_networks or ():
            place, segments = self._segments(network, asking)
            found: set[str] = set()
            for segment in segments:
                aggregates = self._aggregates_of(segment, requester)
                if not aggregates:
                    raise _not_found(place)
                found.update(aggregates)
            if found:
                yield sorted(found)

    def _aggregates_of(self, segment: str, requester: Requester) -> list[str]:
        try:
            found: list[str] = self._placement.part_of(segment, "aggregates", requester)
        except Refused as error:
            LOG.warning("Segment %s has no aggregates in Placement: %s", segment, error)
            return []
        return found

    def _segments(self, network: Any, requester: Requester) -> tuple[str, list[str]]:
        """The subnet or network in question, and its segments: none unless it is routed."""
        network_id = network.network_id
        if network.port_id:
            port = self._port(network.port_id, requester)
            if port["fixed_ips"]:  # all on one segment
                subnet_id = port["fixed_ips"][0]["subnet_id"]
                place = f"subnet {subnet_id}"
                found = self._read(f"subnets/{subnet_id}", place, requester)
                return place, _segments_of([found["subnet"]])
            network_id = port["network_id"]
        if not network_id:
            return "", []
        place = f"network {network_id}"
        found = self._read(f"subnets?network_id={network_id}", place, requester)
        return place, _segments_of(found["subnets"])

    def _port(self, port_id: str, requester: Requester) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._neutron.read(f"/v2.0/ports/{port_id}", None, requester)
        except Unavailable as error:
            raise _failure(error, f"Failed to access port {port_id}") from None
        return found["port"]

    def _read(self, path: str, place: str, requester: Requester) -> dict[str, Any]:
        try:
            return self._neutron.read(f"/v2.0/{path}", None, requester)
        except Refused as error:
            raise _not_found(place) from error
        except Unavailable as error:
            raise _failure(error, "Connection to neutron failed") from None


def _failure(error: Unavailable, text: str) -> Exception:
    """The error of keystoneauth behind *error*, which Nova lets through, or one with *text*."""
    if isinstance(error.__cause__, ClientException):
        return error.__cause__
    return errors.NovaException(f"{text}: {error}")


def _segments_of(subnets: list[dict[str, Any]]) -> list[str]:
    return [each["segment_id"] for each in subnets if each.get("segment_id")]


def _not_found(place: str) -> errors.NoValidHost:
    return errors.NoValidHost(reason=f"Scheduling failed: Aggregates not found for the {place}")
