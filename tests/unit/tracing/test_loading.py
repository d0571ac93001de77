"""Spans are off unless wanted, and nothing of them is needed then."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from oslo_config import cfg
from oslo_messaging._tracing import client as library

from scheduler import errors
from scheduler.tracing import loading
from scheduler.tracing.spans import Spans


def a_conf(**options: Any) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts(library.oslo_messaging_tracing, group=loading.GROUP)
    conf([])
    for name, value in options.items():
        conf.set_override(name, value, group=loading.GROUP)
    return conf


def nothing(name: str) -> Any:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_off_by_default() -> None:
    assert loading.load(a_conf(), "nova-scheduler", nothing) is None


def test_a_library_that_cannot_trace() -> None:
    conf = cfg.ConfigOpts()
    conf([])
    assert loading.load(conf, "nova-scheduler", nothing) is None


def test_on() -> None:
    conf = a_conf(tracing_enabled=True)
    assert isinstance(loading.load(conf, "nova-scheduler"), Spans)
    assert conf.oslo_messaging_tracing.tracing_service_name == "nova-scheduler"


def test_a_name_of_the_operators_own_stays() -> None:
    conf = a_conf(tracing_enabled=True, tracing_service_name="mine")
    loading.load(conf, "nova-scheduler")
    assert conf.oslo_messaging_tracing.tracing_service_name == "mine"


@pytest.mark.parametrize(
    ("protocol", "module"),
    [
        ("http/protobuf", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
        ("grpc", "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"),
    ],
)
def test_what_is_missing_is_named(protocol: str, module: str) -> None:
    conf = a_conf(tracing_enabled=True, otlp_protocol=protocol)
    with pytest.raises(errors.ConfigurationError, match=r"tracing_enabled.*pip install") as caught:
        loading.load(conf, "nova-scheduler", nothing)
    assert module in str(caught.value)


@pytest.mark.slow
def test_nothing_of_it_is_imported_while_it_is_off() -> None:
    program = (
        "import sys, scheduler.daemon.service, scheduler.daemon.preflight; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
