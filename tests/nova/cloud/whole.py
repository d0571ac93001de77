"""The whole cloud: its servers, its one ``nova.conf``, and all programs that read it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from typing import Any, Self

from tests.nova import databases
from tests.nova.cloud.compute_api import ComputeApi
from tests.nova.cloud.programs import Api, Program, Service
from tests.nova.cloud.stand_ins import StandIns
from tests.servers.mariadb import MariaDB
from tests.servers.placement import Placement
from tests.servers.private import PrivateServer
from tests.servers.rabbitmq import RabbitMQ
from tests.world.deployment import Settings

CONTROLLER = "controller"
HOSTS = ("compute1", "compute2", "compute3")
OURS, NOVAS = "ours", "nova"
COMMAND_SECONDS = 120
KILL_SECONDS = 0.2
_PASTE = """\
[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/v2.1: compute
[pipeline:compute]
pipeline = request_id faults who application
[filter:request_id]
paste.filter_factory = nova.api.compute_req_id:ComputeReqIdMiddleware.factory
[filter:faults]
paste.filter_factory = nova.api.openstack:FaultWrapper.factory
[filter:who]
paste.filter_factory = nova.api.auth:NovaKeystoneContext.factory
[app:application]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
"""


@contextlib.contextmanager
def started(*servers: PrivateServer) -> Iterator[None]:
    """Start all at once; they have started when the block ends.

    An error, or Ctrl-C, kills those that have not.
    """
    with ThreadPoolExecutor(len(servers)) as pool:
        starting = [pool.submit(each.start) for each in servers]
        try:
            yield
            for each in as_completed(starting):
                each.result()
        except BaseException:
            while wait(starting, KILL_SECONDS).not_done:
                for server in servers:
                    server.kill()
            raise


class Cloud:
    """Use it as a context manager; everything that it started ends with it.

    *python* and *placement_python* are those of the environments with Nova and with Placement,
    *scheduler* says whose is started.
    """

    def __init__(
        self, folder: Path, python: Path, placement_python: Path, scheduler: str = OURS
    ) -> None:
        self.folder, self._python = folder, python
        self._placement_python, self._first = placement_python, scheduler
        self.config = folder / "nova.conf"
        self._ending = contextlib.ExitStack()
        self.programs: dict[str, Program] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as ending:
            self._start(ending)
            self._ending = ending.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ending.close()

    def _start(self, ending: contextlib.ExitStack) -> None:
        self.stand_ins = ending.enter_context(StandIns())
        self.rabbitmq, mariadb = RabbitMQ(), MariaDB()
        ending.callback(self.rabbitmq.close)
        ending.callback(mariadb.close)
        tables = mariadb.start().create_database()
        self.placement = Placement(self._placement_python, mariadb.url(tables))
        ending.callback(self.placement.close)
        # Reserved there, as everything else that the file names.
        self.status_port = self.placement.reserve_port()
        with started(self.rabbitmq, self.placement):
            self.databases = databases.create(
                mariadb, self._python, self.folder, bus=self.rabbitmq.url()
            ).configured(self.folder, self._settings())
        (self.folder / "api-paste.ini").write_text(_PASTE, encoding="utf-8")
        self._start_programs(ending)
        self.databases.manage("cell_v2", "discover_hosts")

    def _settings(self) -> Settings:
        return {
            "DEFAULT": {
                "transport_url": self.rabbitmq.url(),
                "compute_driver": "fake.MediumFakeDriver",
                "my_ip": "127.0.0.1",
                "report_interval": 5,
            },
            "oslo_concurrency": {"lock_path": str(self.folder)},
            "placement": self.placement.settings,
            "glance": {"endpoint_override": self.stand_ins.endpoint},
            "neutron": {"auth_type": "none", "endpoint_override": self.stand_ins.endpoint},
            "conductor": {"workers": 1},
            # Nova's own scheduler reads the first and passes over what is this project's alone.
            "scheduler": {"workers": 1, "claims": "placement"},
            "metrics_endpoint": {"enabled": True, "port": self.status_port},
        }

    def _start_programs(self, ending: contextlib.ExitStack) -> None:
        api = Api(CONTROLLER, self._python, self.config)
        self.api = ComputeApi(api.endpoint)
        self.programs = {
            "nova-api": api,
            "nova-conductor": self._service("nova-conductor", CONTROLLER),
            **{host: self._service("nova-compute", host) for host in HOSTS},
            OURS: self._service(str(Path(sys.executable).with_name("nova-scheduler")), CONTROLLER),
            NOVAS: self._service("nova-scheduler", CONTROLLER),
        }
        for program in self.programs.values():
            ending.callback(program.close)
        (unused,) = {OURS, NOVAS} - {self._first}
        with started(*(each for name, each in self.programs.items() if name != unused)):
            pass

    def _service(self, name: str, host: str) -> Service:
        """A program of Nova's environment, unless *name* is a whole path."""
        return Service(self.rabbitmq, host, self._python.parent / name, self.config)

    def manage(self, *arguments: str) -> str:
        """Run this project's ``nova-scheduler-manage``; returns what it prints."""
        program = str(Path(sys.executable).with_name("nova-scheduler-manage"))
        done = subprocess.run(
            [program, "--config-file", str(self.config), *arguments],
            capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{arguments} ended with {done.returncode}: {done}")
        return done.stdout

    def explained(self, server: dict[str, Any]) -> str:
        """Why the latest decision on a server came out as it did, in one line."""
        return str(json.loads(self.manage("explain", "--json", server["id"]))[0]["cause"])

    @property
    def status_page(self) -> str:
        return f"http://127.0.0.1:{self.status_port}/status"
