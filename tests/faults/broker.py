"""What happens to the broker, and on the way to it and back."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.faults.world import PAUSE_SECONDS, World
from tests.waiting import wait_until


def restarted(world: World) -> None:
    world.rabbitmq.stop()
    world.rabbitmq.start()


def paused(world: World) -> None:
    world.rabbitmq.pause()
    time.sleep(PAUSE_SECONDS)
    world.rabbitmq.resume()


def killed(world: World) -> None:
    world.rabbitmq.kill()
    world.rabbitmq.start()


def connections_cut(world: World) -> None:
    world.rabbitmq.control("close_all_connections", "a test")


def cut_between_request_and_reply(world: World) -> None:
    """Caller and scheduler lose their connections while the scheduler has the request in hand."""
    sign = world.folder / "in hand"
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(world.ask, world.held_by(sign))
        wait_until(sign.exists, describe="a request in hand")
        connections_cut(world)
        assert not answer.done()
        sign.unlink()
        own, host = answer.result()
    assert host == world.claims()[own]
