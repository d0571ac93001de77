"""Counting messages that the library drops."""

from __future__ import annotations

import contextlib
import logging

import pytest
from oslo_messaging._drivers import impl_rabbit

from scheduler.rpc import undecodable
from scheduler.rpc.undecodable import UndecodableCount


def test_the_library_logs_under_that_name() -> None:
    assert impl_rabbit.LOG.logger.name == undecodable.LOGGER


@pytest.mark.parametrize(
    ("level", "text", "count"),
    [
        (logging.ERROR, "Failed to process message ... skipping it.", 1),
        (logging.DEBUG, "Failed to process message ... skipping it.", 0),
        (logging.ERROR, "Connection failed: %s", 0),
    ],
)
def test_count(level: int, text: str, count: int) -> None:
    logger = logging.getLogger(undecodable.LOGGER)
    counting = UndecodableCount()
    with contextlib.ExitStack() as ending:
        counting.install(ending)
        logger.log(level, text)
        assert counting.count == count
    logger.error("Failed to process message")
    assert counting.count == count
