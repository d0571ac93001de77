"""What happens to the broker, and on the way to it and back."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.faults.world import PAUSE_SECONDS, World
from tests.waiting import wait_until
from tests.world.proxy import Proxy

HEARTBEAT_SECONDS: Final = 6
#: By then answers that were on the way have come.
UNDER_WAY_SECONDS: Final = 1.0


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


def connections_silent(world: World, *, fast_path: bool) -> None:
    """What schedulers send and are sent is lost, but on new connections, which work."""
    port = world.rabbitmq.port
    with contextlib.ExitStack() as ending:
        cable = ending.enter_context(Proxy(port))
        url = world.rabbitmq.url().replace(f":{port}/", f":{cable.port}/")
        options = {
            "DEFAULT": {"transport_url": url},
            "scheduler": {"rpc_fast_path": fast_path},
            "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": HEARTBEAT_SECONDS},
        }
        for number in range(len(world.schedulers)):
            ending.enter_context(world.changed(number, options=options))
        world.load.wait_for_answers(1)
        cable.silence()
        began = time.monotonic()
        time.sleep(UNDER_WAY_SECONDS)
        world.mended()
        world.silent_seconds[fast_path] = world.load.recovery_seconds(began, began)
    assert fast_path or world.silent_seconds.get(True, 0.0) <= 1.2 * world.silent_seconds[False]
