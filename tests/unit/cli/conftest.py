"""``nova-scheduler-manage``, run in this process on a SQLite file of its own."""

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest

from scheduler import exit_codes
from scheduler.cli import app
from scheduler.db import rows, services
from tests.builders import put_node

Run = Callable[..., Any]


@pytest.fixture
def config_file(tmp_path):
    file = tmp_path / "nova.conf"
    file.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/nova.sqlite\n")
    return str(file)


@pytest.fixture
def run(config_file, capsys):
    """Run a command; give its exit status, its output and its errors."""

    def run(*words):
        status: object
        try:
            status = app.main(["--config-file", config_file, *words])
        except SystemExit as ended:
            status = ended.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def manage(run):
    """Run a command that prints JSON if anything; give that."""

    def manage(*words, status=exit_codes.OK):
        result, out, err = run("-f", "json", *words)
        assert (result, err) == (status, "")
        return json.loads(out)

    return manage


@pytest.fixture
def refused(run):
    """Run a command that must fail; give the one line that it says."""

    def refused(*words, status=exit_codes.FAILURE):
        result, out, err = run(*words)
        assert (result, out) == (status, "")
        assert "Traceback" not in err
        if status == exit_codes.FAILURE:
            assert err.count("\n") == 1
            assert err.startswith("nova-scheduler-manage: error: ")
        return err

    return refused


@pytest.fixture
def add_host(database):
    """Give a host a compute node of 16 CPUs and a service that has just sent a heartbeat."""

    def add(host, *, silent_seconds=0, **values):
        seen = rows.utcnow() - datetime.timedelta(seconds=silent_seconds)
        node = {
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
            services.heartbeat(connection, [service.id], seen)
            return put_node(connection, host, f"{host}.example", node)

    return add
