"""Nova's ``compute.rpcapi``, whose API object is made without arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from scheduler.rpc.client import ComputeClient
from scheduler.rpc.transport import get_transport


def names(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    """What the module offers in a process that is configured by *conf*."""

    class ComputeAPI(ComputeClient):
        """Casts on the bus that is configured; connects with its first cast."""

        def __init__(self) -> None:
            super().__init__(get_transport(conf), conf.compute_topic)

    return {"ComputeAPI": ComputeAPI}
