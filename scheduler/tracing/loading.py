"""Whether spans are wanted, and what makes them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, Protocol

import oslo_messaging
from oslo_config import cfg

from scheduler import errors
from scheduler.engine.record import DecisionRecord

GROUP: Final = "oslo_messaging_tracing"
OPTION: Final = f"[{GROUP}] tracing_enabled"
SERVICE_NAME: Final = "tracing_service_name"
EXTRA: Final = "nova-scheduler-standalone[tracing]"
EXPORTERS: Final = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
}
"""What the library sends with, by ``otlp_protocol``; it does not import them itself."""


class Spans(Protocol):
    """What makes spans; see ``spans.Spans``."""

    def decided(self, record: DecisionRecord) -> None:
        """Tell of a finished decision."""

    def serializer(self, entities: oslo_messaging.NoOpSerializer) -> oslo_messaging.NoOpSerializer:
        """What decodes as *entities* does, and tells how long it took."""

    def flush(self) -> None:
        """Send what was not sent yet."""


def is_wanted(conf: cfg.ConfigOpts) -> bool:
    """Whether the library is told to trace; releases of it before 18 cannot."""
    return GROUP in conf and bool(conf[GROUP].tracing_enabled)


def load(
    conf: cfg.ConfigOpts, program: str, find: Callable[[str], Any] = importlib.import_module
) -> Spans | None:
    """What makes the spans of *program*, unless none are wanted.

    The name that the spans are under is *program*'s unless configured.  Raises ConfigurationError
    where they are wanted and what it takes of OpenTelemetry is not installed.
    """
    if not is_wanted(conf):
        return None
    conf.set_default(SERVICE_NAME, program, group=GROUP)
    try:
        find(EXPORTERS[conf[GROUP].otlp_protocol])
        spans: Spans = find("scheduler.tracing.spans").Spans()
    except ModuleNotFoundError as error:
        reason = f"{error.name} is not installed; pip install '{EXTRA}'"
        raise errors.ConfigurationError(option=OPTION, reason=reason) from error
    return spans
