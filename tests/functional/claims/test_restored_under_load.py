"""A database that is put back to an older copy while several schedulers claim in it."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from scheduler import errors
from tests.unit.claims.fleets import GB, Fleet, Worker, a_name
from tests.unit.claims.test_going_back import TABLES, copied
from tests.waiting import wait_until

WORKERS, CALLERS, HOSTS, ROOM = 3, 12, 3, 30
MOST_SECONDS = 90


class Callers:
    """Each asks one worker for one server of 1 GB after the other, until none is to be had."""

    def __init__(self, workers):
        self.workers, self.given, self.ending = workers, {}, threading.Event()

    def ask(self, number):
        worker = self.workers[number % WORKERS]
        while not self.ending.wait(random.uniform(0, 0.2)):
            name = a_name()
            try:
                [self.given[name]] = worker.hosts(f"req-{name}", GB, name)
            except errors.NoValidHost:
                continue

    def read_beside(self, worker):
        while not self.ending.wait(0.5):
            worker.manager.read_beside()

    def wait_for(self, count):
        wait_until(lambda: len(self.given) >= count, MOST_SECONDS, lambda: len(self.given))


def test_no_host_is_given_twice(database):
    fleet = Fleet(database, time.time, HOSTS, ROOM * GB)
    workers = [Worker(database, time.time) for _number in range(WORKERS)]
    callers = Callers(workers)
    with ThreadPoolExecutor(CALLERS + WORKERS) as pool:
        running = [pool.submit(callers.ask, number) for number in range(CALLERS)]
        running += [pool.submit(callers.read_beside, each) for each in workers]
        try:
            callers.wait_for(HOSTS * ROOM // 4)
            earlier = copied(database)
            callers.wait_for(HOSTS * ROOM // 2)
            with database.write() as conn:
                for table in TABLES:
                    conn.execute(table.delete())
                    conn.execute(table.insert(), [dict(row) for row in earlier[table]])
            callers.wait_for(HOSTS * ROOM)
        finally:
            callers.ending.set()
        for each in running:
            each.result(MOST_SECONDS)
    assert Counter(callers.given.values()) == dict.fromkeys(fleet.hosts, ROOM)
    assert fleet.claims() == callers.given
    for each in workers:
        assert each.manager.reservations.histories_lost == 1
        each.close()
