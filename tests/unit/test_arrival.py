"""When a request came counts once: who asks again wants to know what has happened since."""

import threading
import time

from scheduler import arrival


def test_the_arrival_counts_once_and_only_within_the_request():
    before = time.monotonic()
    with arrival.noted(5.0):
        assert arrival.take() == 5.0
        assert arrival.take() >= before
    with arrival.noted(6.0):
        pass
    assert arrival.take() >= before


def test_whether_somebody_had_it_before_is_known_to_the_end_of_the_request():
    with arrival.noted(5.0, is_redelivered=True):
        arrival.take()
        assert arrival.is_redelivered()
    assert not arrival.is_redelivered()
    with arrival.noted(5.0):
        assert not arrival.is_redelivered()


def test_others_know_nothing_of_it():
    found = []
    before = time.monotonic()
    with arrival.noted(5.0):
        thread = threading.Thread(target=lambda: found.append(arrival.take()))
        thread.start()
        thread.join()
    assert found[0] >= before
