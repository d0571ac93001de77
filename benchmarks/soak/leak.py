"""Leaks that are planted, to see that they are found."""

from __future__ import annotations

import os
import threading
import uuid
from typing import Any, Final

from benchmarks.soak.plan import DESCRIPTORS, OBJECTS, ROWS, THREADS, Plan
from scheduler.db import services
from scheduler.db.database import Database


class Leak:
    """Leaks what *plan* says; ``close`` gives back what does not end with it."""

    def __init__(self, plan: Plan, database: Database) -> None:
        self._database = database
        self._per_request, self._due = plan.leak, 0.0
        self._plant: Final = {
            OBJECTS: lambda: self._objects.append([]),
            DESCRIPTORS: self._a_descriptor,
            THREADS: self._a_thread,
            ROWS: self._a_row,
        }[plan.leak_of]
        self._objects: list[Any] = []
        self._descriptors: list[int] = []
        self._over = threading.Event()

    def step(self) -> None:
        """As much as one request leaks; a part of one is leaked when it is a whole."""
        self._due += self._per_request
        while self._due >= 1.0:
            self._due -= 1.0
            self._plant()

    def close(self) -> None:
        """Close descriptors, end threads."""
        self._over.set()
        for each in self._descriptors:
            os.close(each)

    def _a_descriptor(self) -> None:
        self._descriptors.append(os.open(os.devnull, os.O_RDONLY))

    def _a_thread(self) -> None:
        threading.Thread(target=self._over.wait, name="leaked", daemon=True).start()

    def _a_row(self) -> None:
        """A service of no compute host: nobody deletes it."""
        name = str(uuid.uuid4())
        with self._database.write() as connection:
            services.create_many(connection, [name], "nova-console", "console", 66)
