"""(metadata of the host's aggregates, project) -> admitted or not."""

from __future__ import annotations

import pytest

from scheduler.filters.aggregate_multitenancy_isolation import AggregateMultiTenancyIsolation
from tests.builders import a_conf, a_host, a_request, verdict

OTHER = ["multitenancy.other"]
KEY = "filter_tenant_id"


@pytest.mark.parametrize(
    ("metadata", "current", "newton"),
    [
        pytest.param([], [], [], id="no aggregate"),
        pytest.param([{"other": "p2"}], [], [], id="other metadata"),
        pytest.param([{KEY: "p1"}], [], [], id="this project"),
        pytest.param([{KEY: "p2, p1"}], [], [], id="one of several"),
        pytest.param([{KEY: "p2"}, {KEY: "p1"}], [], [], id="the second aggregate's"),
        pytest.param([{KEY: "p2"}], OTHER, OTHER, id="another project"),
        pytest.param([{KEY: "P1"}], OTHER, OTHER, id="projects have a case"),
        pytest.param([{KEY: ""}], OTHER, OTHER, id="nobody"),
        pytest.param([{"filter_tenant_id2": "p2"}], OTHER, [], id="a key with more behind"),
        pytest.param([{KEY: "p2", "filter_tenant_id3": "p1"}], [], OTHER, id="two keys"),
    ],
)
def test_projects_are_admitted(metadata, current, newton):
    found = {}
    for name in ("current", "newton"):
        conf = a_conf()
        conf.set_override("semantics", name, group="scheduler")
        isolation = AggregateMultiTenancyIsolation(conf)
        host = a_host(aggregates=metadata)
        found[name] = verdict(isolation, host, a_request(project_id="p1"))

    assert found == {"current": current, "newton": newton}
