"""One small module per filter, named as in Nova; ``registry`` lists them all.

``base`` says what a filter is, ``chain`` runs the configured ones.  To write one, start from
``all_hosts_filter`` for the shape and ``ram_filter`` for columns, limits and reasons.
"""

from scheduler.filters.base import BaseHostFilter, Condition, HostFilter, Reason
from scheduler.filters.registry import all_filters

__all__ = ["BaseHostFilter", "Condition", "HostFilter", "Reason", "all_filters"]
