"""ImagePropertiesWeigher: servers whose images are alike together (sections 7.3 and 7.7)."""

from typing import Any

import numpy as np

from scheduler.conf.filter_scheduler import parse_ratios
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.instances import Properties, properties_of
from scheduler.weights.base import HostWeigher


class ImagePropertiesWeigher(HostWeigher):
    """Number of properties that the images of the host's servers share with the request's.

    Off, whatever aggregates say, unless its multiplier is set.
    """

    multiplier_option = "image_props_weight_multiplier"

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        setting = conf.filter_scheduler.image_props_weight_setting
        self.ratios = dict(parse_ratios(setting, "image_props_weight_setting"))

    def raw(self, hosts: Candidates, request: Any) -> np.ndarray:
        """Every shared property counts once per server, times its ratio."""
        wanted = properties_of(request.image)
        if not wanted or self.multiplier == 0:
            return hosts.constant(0.0)
        of_row = np.zeros(hosts.table.capacity)
        shared: dict[Properties, float] = {}
        for host, instances in hosts.table.instances.items():
            total = 0.0
            for instance in instances.values():
                properties = instance.image_properties
                if properties not in shared:
                    shared[properties] = sum(map(self._ratio, wanted & properties))
                total += shared[properties]
            of_row[hosts.table.rows_showing_instances([host])] = total
        return of_row[hosts.at]

    def _ratio(self, pair: tuple[str, str]) -> float:
        return self.ratios.get(pair[0], 0.0) if self.ratios else 1.0
