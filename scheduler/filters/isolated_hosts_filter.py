"""IsolatedHostsFilter: certain images on certain hosts.  Reference page filters, section 6.21."""

from collections.abc import Iterator
from typing import Any

from scheduler import semantics
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

NOT_ISOLATED = Reason("isolated.host_is_not", "the image may only run on isolated hosts")
ISOLATED = Reason("isolated.image_is_not", "the host is kept for isolated images")


class IsolatedHostsFilter(HostFilter):
    """Passes isolated hosts for isolated images, and the others for the others."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (NOT_ISOLATED, ISOLATED)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        options = conf.filter_scheduler
        self.images = frozenset(options.isolated_images)
        self.hosts = tuple(options.isolated_hosts)
        self.restricted = options.restrict_isolated_hosts_to_isolated_images
        self.image_id = semantics.from_conf(conf).image_id

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Compare names and ids exactly; isolated hosts take others unless restricted."""
        isolated = hosts.named(self.hosts)
        if self.images and self.image_id(request.image) in self.images:
            yield NOT_ISOLATED, isolated
        elif self.restricted:
            yield ISOLATED, ~isolated
