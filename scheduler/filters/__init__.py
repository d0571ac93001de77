"""One small module per filter, named as in Nova; ``registry`` lists them all.

``base`` says what a filter is; ``engine.evaluation`` runs the configured ones.  Helpers are
``extra_specs_ops``, ``host_attributes`` and ``bounds``.
To write a filter, start from ``all_hosts_filter`` for the shape and ``ram_filter`` for columns,
limits and reasons.  The engine and all above it may import this package; it knows no weigher.
"""

from scheduler.filters.base import BaseHostFilter, Condition, HostFilter, Reason, Refused
from scheduler.filters.registry import all_filters

__all__ = ["BaseHostFilter", "Condition", "HostFilter", "Reason", "Refused", "all_filters"]
