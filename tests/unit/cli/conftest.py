"""``nova-scheduler-manage``, run in this process on a SQLite file of its own."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler import exit_codes
from scheduler.cli import app
from scheduler.db import compute_nodes, rows, services
from scheduler.db.database import Database

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """The program sets up logging; give it back as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("oslo_config", "scheduler", "alembic"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture
def config_file(tmp_path) -> str:
    file = tmp_path / "nova.conf"
    file.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/nova.sqlite\n")
    return str(file)


@pytest.fixture
def database(synced_database) -> Database:
    """Tables ready, no rows but what ``db sync`` makes."""
    return synced_database


@pytest.fixture
def manage(config_file, capsys) -> Run:
    """Run a command; give its JSON output, or None if it prints nothing."""

    def run(*words: str, status: int = exit_codes.OK) -> Any:
        assert app.main(["--config-file", config_file, *words]) == status
        captured = capsys.readouterr()
        assert captured.err == ""
        return json.loads(captured.out) if captured.out else None

    return run


@pytest.fixture
def refused(config_file, capsys) -> Run:
    """Run a command that must fail; give the one line that it says."""

    def run(*words: str, status: int = exit_codes.FAILURE) -> str:
        result: object
        try:
            result = app.main(["--config-file", config_file, *words])
        except SystemExit as ended:
            result = ended.code
        assert result == status
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert captured.out == ""
        if status == exit_codes.FAILURE:
            assert captured.err.count("\n") == 1
            assert captured.err.startswith("nova-scheduler-manage: error: ")
        return captured.err

    return run


AddHost = Callable[..., int]


@pytest.fixture
def add_host(database) -> AddHost:
    """Give a host a compute node of 16 CPUs and a service that has just sent a heartbeat."""

    def add(host: str, *, silent_seconds: int = 0, **values: Any) -> int:
        seen = rows.utcnow() - datetime.timedelta(seconds=silent_seconds)
        node: dict[str, Any] = {
            "vcpus": 16,
            "vcpus_used": 4,
            "memory_mb": 32768,
            "memory_mb_used": 2048,
            "local_gb": 500,
            "local_gb_used": 20,
            "free_ram_mb": 30720,
            "free_disk_gb": 480,
            "running_vms": 2,
            "hypervisor_type": "QEMU",
            "hypervisor_version": 2008000,
            "host_ip": "192.0.2.7",
            **values,
        }
        with database.write() as connection:
            service = services.get_or_create(connection, host, "nova-compute", "compute", 16)
            services.heartbeat(connection, service.id, 1, seen)
            return compute_nodes.upsert(connection, host, f"{host}.example", node)

    return add
