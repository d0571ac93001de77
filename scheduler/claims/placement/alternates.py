"""Claiming one host that a scheduler named, for who decides nothing: the conductor."""

from __future__ import annotations

import json
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import objects
from scheduler.claims.placement.allocating import Allocating, Requester
from scheduler.claims.placement.client import PlacementClient, Unavailable

LOG = logging.getLogger(__name__)


class PlacementAlternates:
    """Claims the allocation that a Selection carries, and gives back what an instance has."""

    def __init__(self, client: PlacementClient, allocating: Allocating | None = None) -> None:
        self._client = client
        self._allocating = allocating or Allocating(client)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> PlacementAlternates:
        """With the Placement of ``[placement]``; raises ConfigurationError."""
        return cls(PlacementClient.from_conf(conf))

    def claim(
        self,
        context: Any,
        spec: objects.RequestSpec,
        instance_uuid: str,
        selection: objects.Selection,
    ) -> bool:
        """Claim the host of *selection* for the instance, instead of the one that failed.

        A selection without an allocation request needs none.  False if Placement refuses or does
        not answer; raises AllocationUpdateFailed when somebody else claims for the instance.
        """
        text = selection.allocation_request
        request = json.loads(text) if text else None
        if request is None:
            return True
        requester = Requester.of(context, spec)
        version = selection.allocation_request_version
        try:
            before = self._allocating.claim(
                requester, instance_uuid, request, version, lambda _before: False
            )
        except Unavailable as error:
            LOG.warning("Placement is not available for instance %s: %s", instance_uuid, error)
            return False
        return before is not None

    def release(self, context: Any, instance_uuid: str) -> None:
        """Whatever the instance has is free again."""
        try:
            self._client.delete(instance_uuid, getattr(context, "request_id", None))
        except Unavailable as error:
            LOG.error("The allocations of instance %s stay: %s", instance_uuid, error)
