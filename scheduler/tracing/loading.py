"""Loading of spans, where they are wanted."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from oslo_config import cfg

from scheduler import errors

GROUP: Final = "oslo_messaging_tracing"
OPTION: Final = f"[{GROUP}] tracing_enabled"
SERVICE_NAME: Final = "tracing_service_name"
EXTRA: Final = "nova-scheduler-standalone[tracing]"
EXPORTERS: Final = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
}
"""Module of the library's exporter, by ``otlp_protocol``; it does not import them itself."""


def load(
    conf: cfg.ConfigOpts, program: str, find: Callable[[str], Any] = importlib.import_module
) -> Any:
    """The ``spans.Spans`` of *program*; None unless spans are wanted.

    The name that the spans are under is *program*'s unless configured.  Releases of the library
    before 18 cannot trace.  Raises ConfigurationError where spans are wanted and what it takes of
    OpenTelemetry is not installed.
    """
    if GROUP not in conf or not conf[GROUP].tracing_enabled:
        return None
    conf.set_default(SERVICE_NAME, program, group=GROUP)
    try:
        find(EXPORTERS[conf[GROUP].otlp_protocol])
        return find("scheduler.tracing.spans").Spans()
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed; pip install '{EXTRA}'"
        raise errors.ConfigurationError(option=OPTION, reason=reason) from error
