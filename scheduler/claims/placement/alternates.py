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
        """Claim the host of *selection* for the instance, besides what it has.

        The host that failed has given back its part; one that moves keeps the host it is on.
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
                requester, instance_uuid, request, version, lambda _before: True
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

    def leave(self, context: Any, instance_uuid: str, node_uuid: str) -> None:
        """The instance is not on the host with that node any more; what it has elsewhere stays."""
        request_id = getattr(context, "request_id", None)
        try:
            before = self._client.allocations(instance_uuid, request_id)
            rest = {
                provider: each
                for provider, each in before["allocations"].items()
                if provider != node_uuid
            }
            if len(rest) < len(before["allocations"]):
                # Whose it is stays what it was.
                owner = Requester(before["project_id"], before["user_id"], request_id)
                self._allocating.give_back(owner, instance_uuid, {"allocations": rest})
        except Unavailable as error:
            LOG.error("Instance %s keeps allocations on %s: %s", instance_uuid, node_uuid, error)
