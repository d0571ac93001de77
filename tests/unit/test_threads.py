"""Work done beside what asked for it."""

from scheduler.threads import BatchThread


def test_what_cannot_be_handled_is_logged_and_the_next_is_handled(caplog):
    handled = []

    def handle(batch):
        handled.extend(batch)
        if batch == [1]:
            raise RuntimeError("can't start new thread")

    thread = BatchThread("refusals", handle, most=3, batch=1)
    assert all(map(thread.put, (1, 2, 3)))
    assert (thread.close(60), handled) == (0, [1, 2, 3])
    assert "refusals goes on after an error" in caplog.text
    assert "can't start new thread" in caplog.text
