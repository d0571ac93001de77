"""What Nova before 34 lacks to run in threads, with its databases in files that ours can read."""

import collections
import contextlib
import importlib
import os
import sqlite3
import tempfile
import threading
from typing import Any

import fixtures
from nova import test
from nova.compute.provider_tree import ProviderTree
from nova.db.api import api as api_database
from nova.db.main import api as main_database
from nova.tests.fixtures import notifications
from oslo_db.sqlalchemy import enginefacade

nova_fixtures = importlib.import_module("nova.tests.fixtures.nova")  # its package has another
#: Nova 34 does the same itself.
IS_OLDER = not hasattr(nova_fixtures, "DatabaseWriteLock")


def install() -> None:
    """Give each database of a test a file, and each file one writer at a time."""
    if not IS_OLDER:
        return
    for module in (api_database, main_database):
        module._get_db_conf = _in_file(module._get_db_conf)
    enginefacade._TransactionContextManager._transaction_scope = _one_writer()
    cells = nova_fixtures.CellDatabases
    cells._cache_schema = _left_empty(cells._cache_schema)
    # Asks the green thread, which is none, for the test that it is of.
    notifications.FakeVersionedNotifier._get_sender_test_case_id = lambda self: self.test_case_id
    if "__getstate__" not in vars(ProviderTree):  # Nova 32 cannot copy its lock
        ProviderTree.__getstate__ = lambda self: {**vars(self), "lock": None}
        ProviderTree.__setstate__ = lambda it, kept: vars(it).update(kept, lock=ProviderTree().lock)
    set_up = test.TestCase.setUp
    test.TestCase.setUp = lambda self: (self.useFixture(fixtures.NestedTempfile()), set_up(self))


def _in_file(options_of: Any) -> Any:
    def options(*args: Any, **kwargs: Any) -> Any:
        found = options_of(*args, **kwargs)
        if found["connection"] == "sqlite://":
            path = os.path.join(tempfile.mkdtemp(), "database")
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA journal_mode=WAL")  # readers do not wait for the writer
            found["connection"] = f"sqlite:///{path}"
        return found

    return options


def _left_empty(cache_schema: Any) -> Any:
    """Take the first schema off its file again: in memory it would have gone with the engine."""

    def cache(self: Any, connection: str) -> None:
        is_first = not nova_fixtures.DB_SCHEMA["main", None]
        cache_schema(self, connection)
        if is_first:
            os.truncate(self._ctxt_mgrs[connection].writer.get_engine().url.database, 0)

    return cache


def _one_writer() -> Any:
    transaction_scope = enginefacade._TransactionContextManager._transaction_scope
    locks: Any = collections.defaultdict(threading.RLock)

    @contextlib.contextmanager
    def scope(self: Any, context: Any) -> Any:
        writes = self._mode is enginefacade._WRITER
        own = locks[self.writer.get_engine().url] if writes else contextlib.nullcontext()
        with own, transaction_scope(self, context) as resource:
            yield resource

    return scope
