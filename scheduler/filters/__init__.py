"""The filters; ``registry`` lists them all, with Nova's paths to them.

``base`` says what a filter is; ``engine.evaluation`` runs the configured ones.  Helpers are
``extra_specs_ops`` and ``host_attributes``.  To write a filter, start from ``all_hosts_filter``
for the shape and ``capacity`` for columns, limits and reasons.
The engine and all above it may import this package; it knows no weigher.
"""

from scheduler.filters.base import BaseHostFilter, Condition, HostFilter, Reason
from scheduler.filters.registry import all_filters

__all__ = ["BaseHostFilter", "Condition", "HostFilter", "Reason", "all_filters"]
