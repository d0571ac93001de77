"""JsonFilter: a query over attributes of the host.  Reference page filters, section 6.22."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from scheduler.filters import host_attributes, json_query
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import columns
from scheduler.hosts.candidates import Candidates
from scheduler.hosts.inputs import Inputs

NO_MATCH = Reason("json.no_match", "the host does not match the query")


def _query(request: Any) -> Hashable | None:
    """The query, if the table holds all that it asks for."""
    query = request.get_scheduler_hint("query") or ""
    if not isinstance(query, str) or host_attributes.reads_elsewhere(query):
        return None
    return query


class JsonFilter(HostFilter):
    """Passes hosts that match the JSON text of hint ``query``."""

    reasons = (NO_MATCH,)
    inputs = Inputs(*columns.ALL, of_request=_query, idle="")

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.most_levels = conf.scheduler.max_request_depth

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Raises InvalidRequest for a query that cannot be evaluated, on whichever host."""
        if query := request.get_scheduler_hint("query"):
            yield NO_MATCH, json_query.matches(query, hosts, self.most_levels)
