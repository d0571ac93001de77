"""(metadata of the host's aggregates, extra specs) -> satisfied or not."""

from __future__ import annotations

import pytest

from scheduler import errors
from scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter
from tests.builders import a_conf, a_host, a_request, verdict

MISSING, REFUSED = ["aggregate_specs.missing"], ["aggregate_specs.refused"]
SCOPE = "aggregate_instance_extra_specs"


@pytest.mark.parametrize(
    ("metadata", "extra_specs", "reasons"),
    [
        pytest.param([], {}, [], id="nothing demanded"),
        pytest.param([], {"ssd": "true"}, MISSING, id="no aggregate"),
        pytest.param([], {"hw:x": "1"}, [], id="another scope"),
        pytest.param([{"ssd": "true"}], {"ssd": "true"}, [], id="unscoped"),
        pytest.param([{"ssd": "true"}], {f"{SCOPE}:ssd": "true"}, [], id="our scope"),
        pytest.param([{"ssd": "no"}], {f"{SCOPE}:ssd": "true"}, REFUSED, id="our scope, refused"),
        pytest.param([{"a:b": "1"}], {f"{SCOPE}:a:b": "1"}, [], id="colons in the key"),
        pytest.param([{"b": "1"}], {f"{SCOPE}:a:b": "1"}, MISSING, id="and not its end alone"),
        pytest.param([], {f"{SCOPE.title()}:ssd": "x"}, [], id="scopes have a case"),
        pytest.param([{"": "1"}], {f"{SCOPE}:": "1"}, [], id="no key at all"),
        pytest.param([{"ssd": "1, 2 ,3"}], {"ssd": "2"}, [], id="one of several"),
        pytest.param([{"n": "3"}, {"n": "4"}], {"n": "!= 3"}, [], id="any other value will do"),
        pytest.param([{"a": "1"}, {"b": "2"}], {"a": "1", "b": "2"}, [], id="on two aggregates"),
        pytest.param([{"a": "1"}], {"a": "1", "b": "2"}, MISSING, id="all are demanded"),
        pytest.param([{"n": "5"}], {"n": ">= 6"}, REFUSED, id="operator"),
        pytest.param([{"n": "x"}], {"a": "1", "n": "= 5"}, MISSING, id="asked in turn"),
    ],
)
def test_aggregates_satisfy_extra_specs(metadata, extra_specs, reasons):
    host, request = a_host(aggregates=metadata), a_request(flavor={"extra_specs": extra_specs})

    assert verdict(AggregateInstanceExtraSpecsFilter(a_conf()), host, request) == reasons


@pytest.mark.parametrize("requirement", ["= 5", "<or>"])
def test_what_cannot_be_compared_is_the_requests_fault(requirement):
    host = a_host(aggregates=[{"tier": "gold"}])
    request = a_request(flavor={"extra_specs": {"tier": requirement}})

    with pytest.raises(errors.InvalidRequest, match=r"flavor\.extra_specs\.tier"):
        verdict(AggregateInstanceExtraSpecsFilter(a_conf()), host, request)
