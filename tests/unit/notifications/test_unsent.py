"""What the library logs of a notification that could not be sent."""

from __future__ import annotations

import logging

import pytest

from scheduler.notifications import unsent


def test_the_payload_stays_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    unsent.install()
    unsent.install()
    message = {"event_type": "a.b", "message_id": "1", "payload": {"user_data": "hidden"}}
    logging.getLogger(unsent.LOGGER).error(
        "Could not send notification to %(topic)s. Payload=%(message)s",
        {"topic": "notifications", "message": message},
    )
    logging.getLogger(unsent.LOGGER).error("another %s", "line")
    assert "Could not send notification to notifications" in caplog.text
    assert "a.b" in caplog.text
    assert "another line" in caplog.text
    assert "hidden" not in caplog.text
