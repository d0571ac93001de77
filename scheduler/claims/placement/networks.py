"""Routed networks: the aggregates of the segments that a server's ports may be on.

Neutron knows the segments, and makes of each a provider in an aggregate with the hosts on it.
"""

import contextlib
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
    in_form,
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
            (place, segments), found = self._segments(network, asking), set[str]()
            for segment in segments:
                aggregates = self._aggregates_of(segment, requester)
                if not aggregates:
                    raise _not_found(place)
                found.update(aggregates)
            if found:
                yield sorted(found)

    @in_form("aggregates")
    def _aggregates_of(self, segment: str, requester: Requester) -> list[str]:
        try:
            return [*map(str, self._placement.part_of(segment, "aggregates", requester))]
        except Refused as error:
            LOG.warning("Segment %s has no aggregates in Placement: %s", segment, error)
            return []

    def _segments(self, network: Any, requester: Requester) -> tuple[str, list[str]]:
        """The subnet or network in question, and its segments: none unless it is routed."""
        network_id, subnet_id = network.network_id, None
        if network.port_id:
            with _asking(f"Failed to access port {network.port_id}"):
                path = f"/v2.0/ports/{network.port_id}"
                port = self._neutron.read(path, None, requester)["port"]
                network_id, addresses = port["network_id"], port["fixed_ips"]
                subnet_id = addresses[0]["subnet_id"] if addresses else None  # all on one segment
        if not (subnet_id or network_id):
            return "", []
        place = f"subnet {subnet_id}" if subnet_id else f"network {network_id}"
        path = f"/{subnet_id}" if subnet_id else f"?network_id={network_id}"
        with _asking("Connection to neutron failed", place):
            found = self._neutron.read(f"/v2.0/subnets{path}", None, requester)
            subnets = [found["subnet"]] if subnet_id else found["subnets"]
            return place, [each["segment_id"] for each in subnets if each.get("segment_id")]


@contextlib.contextmanager
def _asking(text: str, place: str = "") -> Iterator[None]:
    """Raise keystoneauth's error, as Nova does, or NovaException, where Neutron does not answer.

    The *text* names what was asked for.  NoValidHost is raised where a *place* is refused.
    """
    try:
        with in_form("answers of Neutron"):
            yield
    except Unavailable as error:
        if place and isinstance(error, Refused):
            raise _not_found(place) from error
        if isinstance(error.__cause__, ClientException):
            raise error.__cause__ from None
        raise errors.NovaException(f"{text}: {error}") from None


def _not_found(place: str) -> errors.NoValidHost:
    return errors.NoValidHost(reason=f"Scheduling failed: Aggregates not found for the {place}")
