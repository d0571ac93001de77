"""The image and the compose file: parsed, and their commands run on this machine's own servers."""

import configparser
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.house.tree import ROOT
from tests.waiting import wait_until

PACKAGING = ROOT / "packaging"
COMPOSE = yaml.safe_load((PACKAGING / "compose.yaml").read_text(encoding="utf-8"))
CONFIG = "/etc/nova/nova.conf"
PROGRAMS = Path(sys.executable).parent
DAEMONS = ("scheduler", "conductor", "compute")


def instructions():
    """Word and rest of each instruction of the Containerfile."""
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return [(word, rest) for word, _space, rest in (line.partition(" ") for line in lines)]


def command_of(name):
    """The command of a service: its own, or that of the image."""
    [of_image] = [json.loads(rest) for word, rest in instructions() if word == "CMD"]
    return COMPOSE["services"][name].get("command", of_image)


def test_the_image_is_made_of_what_there_is():
    words = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "CMD"}
    assert {word for word, _rest in instructions()} == words
    for word, rest in instructions():
        if word == "RUN":
            subprocess.run(["bash", "-n", "-c", rest], check=True)
    text = "\n".join(rest for _word, rest in instructions())
    assert (ROOT / "constraints.txt").is_file()
    version = re.findall(r"python:([\d.]+)-slim", text)
    assert len(set(version)) == 1
    assert f"Python :: {version[0]}\n" in (ROOT / "setup.cfg").read_text(encoding="utf-8")
    unit = (ROOT / "systemd/nova-scheduler.service").read_text(encoding="utf-8")
    assert f"ExecStart=/usr/bin/{shlex.join(command_of('scheduler'))}\n" in unit


def test_the_compose_file_fits_together():
    services = COMPOSE["services"]
    assert set(services) == {"rabbitmq", "mariadb", "tables", *DAEMONS}
    for name, service in services.items():
        for other, condition in service.get("depends_on", {}).items():
            wanted = condition["condition"]
            assert wanted != "service_healthy" or "healthcheck" in services[other], name
        for config in service.get("configs", ()):
            assert (PACKAGING / COMPOSE["configs"][config["source"]]["file"]).is_file()
    own = configparser.ConfigParser(interpolation=None)
    own.read(PACKAGING / "nova.conf")
    bus, database = services["rabbitmq"]["environment"], services["mariadb"]["environment"]
    login = f"{bus['RABBITMQ_DEFAULT_USER']}:{bus['RABBITMQ_DEFAULT_PASS']}"
    assert own["DEFAULT"]["transport_url"] == f"rabbit://{login}@rabbitmq:5672/"
    login = f"{database['MARIADB_USER']}:{database['MARIADB_PASSWORD']}"
    place = f"mariadb/{database['MARIADB_DATABASE']}"
    assert own["database"]["connection"] == f"mysql+pymysql://{login}@{place}"
    port = own["metrics_endpoint"]["port"]
    assert services["scheduler"]["ports"] == [f"127.0.0.1:{port}:{port}"]


class Machine:
    """The programs of the compose file, on this machine's servers instead of containers."""

    def __init__(self, folder, transport_url, database_url):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        own = configparser.ConfigParser(interpolation=None)
        own.read(PACKAGING / "nova.conf")
        own["DEFAULT"].update(transport_url=transport_url, state_path=str(folder))
        own["database"]["connection"] = database_url
        own["metrics_endpoint"]["port"] = self.port
        self.folder = folder
        with (folder / "nova.conf").open("w") as file:
            own.write(file)

    def words(self, command):
        here = [word.replace(CONFIG, str(self.folder / "nova.conf")) for word in command]
        return [word.replace(":9642", f":{self.port}") for word in here]

    def environment(self):
        return {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}

    def run(self, command):
        return subprocess.run(
            self.words(command), env=self.environment(), cwd=self.folder, timeout=200,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def start(self, name, ending):
        log = ending.enter_context((self.folder / f"{name}.log").open("w"))
        process = subprocess.Popen(
            self.words(command_of(name)), env=self.environment(), cwd=self.folder, stderr=log
        )
        ending.callback(process.wait, 60)
        ending.callback(process.terminate)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")


@pytest.fixture
def machine(transport_url, mariadb_url, tmp_path):
    with ExitStack() as ending:
        made = Machine(tmp_path, transport_url, mariadb_url)
        assert made.run(command_of("tables")).returncode == 0
        for name in DAEMONS:
            made.start(name, ending)
        yield made


def boot_command():
    """The one in the head of the compose file, as it runs inside of a container."""
    head = (PACKAGING / "compose.yaml").read_text(encoding="utf-8").split("\nname:")[0]
    text = head.replace("\\\n#", "").split("exec conductor ")[1].split("\n")[0]
    return shlex.split(text)


@pytest.mark.timeout(400)
def test_the_commands_boot_servers(machine):
    check = COMPOSE["services"]["scheduler"]["healthcheck"]["test"]
    assert check[0] == "CMD"
    wait_until(
        lambda: machine.run(check[1:]).returncode == 0, 120, lambda: machine.log("scheduler")
    )
    done = machine.run([*boot_command(), "-f", "json"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["state"].upper() for each in json.loads(done.stdout)] == ["ACTIVE"] * 3
    warned = [line for line in machine.log("scheduler").splitlines() if " WARNING " in line]
    assert warned == [], "of a normal first start"
