"""JsonFilter: a query over attributes of the host.  Reference page filters, section 6.22."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.filters import json_query
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

NO_MATCH = Reason("json.no_match", "the host does not match the query")


class JsonFilter(HostFilter):
    """Passes hosts that match the JSON text of hint ``query``."""

    reasons = (NO_MATCH,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.most_levels = conf.scheduler.max_request_depth

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Raises InvalidRequest for a query that cannot be evaluated, on whichever host."""
        if query := request.get_scheduler_hint("query"):
            yield NO_MATCH, json_query.matches(query, hosts, self.most_levels)
