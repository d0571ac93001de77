"""What works on requests under eventlet: as executors of futures do, but for the futures."""

import eventlet

from scheduler import concurrency


def test_all_is_done_when_the_end_was_waited_for():
    done = []
    most = []

    def work(number):
        most.append(number)
        eventlet.sleep(0)
        done.append(most.pop())

    workers = concurrency.Greenlets(max_workers=2)
    for number in range(5):
        workers.submit(work, number)
        assert len(most) <= 2
    workers.shutdown(wait=True)
    assert sorted(done) == list(range(5))
