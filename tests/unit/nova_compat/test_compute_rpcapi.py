"""What a driver of Havana's kind casts, as it arrives on the bus, against the recorded message."""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Iterator

import pytest
from oslo_config import cfg

from scheduler import objects
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request
from tests.process_options import on_in_process_bus
from tests.unit.nova_compat.conftest import Host, listening

DEADLINE_SECONDS = 20
WIRE = pathlib.Path(__file__).parents[2] / "data" / "wire"
RECORDED = json.loads((WIRE / "derived-havana-compute-run_instance-v2.37.cast.json").read_text())
CONTEXT = RequestContext("u", "p", remote_address="10.1.7.42", overwrite=False)
TOPIC = "compute_of_havana"


@pytest.fixture
def conf(tmp_path: pathlib.Path) -> Iterator[cfg.ConfigOpts]:
    """The process-wide options, with the in-process bus."""
    yield on_in_process_bus(tmp_path, compute_topic=TOPIC)
    cfg.CONF.reset()


@pytest.fixture
def host(conf: cfg.ConfigOpts) -> Iterator[Host]:
    """A host named ``cmp1`` on the bus."""
    with listening(conf, "cmp1", TOPIC) as host:
        yield host


@pytest.mark.usefixtures("installed")
def test_run_instance_as_havana_sent_it(host: Host) -> None:
    spec = a_request()
    request_spec = {**spec.to_legacy_request_spec_dict(), "instance_uuids": [OWN_UUID]}
    instance = objects.Instance(uuid=OWN_UUID, memory_mb=512, system_metadata={"group": "web"})
    rpcapi = importlib.import_module("nova.compute.rpcapi")

    rpcapi.ComputeAPI().run_instance(
        CONTEXT,
        instance=instance,
        host="cmp1",
        request_spec=request_spec,
        filter_properties={"context": CONTEXT, "limits": {"memory_mb": 98304.0}},
        requested_networks=None,
        injected_files=[],
        admin_password="s3cret",
        is_first_time=True,
        node="cmp1",
        legacy_bdm_in_spec=False,
    )

    context, arguments = host.received.get(timeout=DEADLINE_SECONDS)
    recorded = RECORDED["message"]["args"]
    assert arguments.keys() == recorded.keys()
    assert arguments["instance"]["uuid"] == OWN_UUID
    assert arguments["instance"]["system_metadata"] == {"group": "web"}
    assert arguments["request_spec"]["instance_type"]["name"] == "m1.tiny"
    assert arguments["request_spec"]["instance_uuids"] == [OWN_UUID]
    assert arguments["filter_properties"] == {"limits": {"memory_mb": 98304.0}}
    same = ("injected_files", "admin_password", "is_first_time", "node", "legacy_bdm_in_spec")
    assert {name: arguments[name] for name in same} == {name: recorded[name] for name in same}
    assert context["remote_address"] == RECORDED["message"]["_context_remote_address"]
