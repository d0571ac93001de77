"""Loggers with the level that Nova's had until Juno."""

from __future__ import annotations

import logging
from typing import Any

from oslo_log import log as oslo_log


class AuditingLogger(oslo_log.KeywordArgumentAdapter):
    """A logger that knows ``audit``, which is INFO here, and ``warn`` on every Python."""

    def audit(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log at INFO."""
        self.log(logging.INFO, msg, *args, **kwargs)

    def warn(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log at WARNING."""
        self.log(logging.WARNING, msg, *args, **kwargs)


def get_logger(name: str = "unknown", version: str = "unknown") -> AuditingLogger:
    """Nova's ``getLogger``."""
    return AuditingLogger(logging.getLogger(name), {"version": version})
