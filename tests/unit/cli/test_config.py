"""``config validate`` names every mistake; ``config show`` says where values come from."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from scheduler import exit_codes
from scheduler.cli import app
from scheduler.filters.base import BaseHostFilter

OPTION, PLUGIN = exit_codes.CONFIG_OPTION, exit_codes.CONFIG_PLUGIN
DATABASE, SURROUNDINGS = exit_codes.CONFIG_DATABASE, exit_codes.CONFIG_SURROUNDINGS
FILE, BROKER = exit_codes.CONFIG_FILE, exit_codes.CONFIG_BROKER

BUS = "transport_url = rabbit://user:s3cret@127.0.0.1:1/"


class FilterThatFails(BaseHostFilter):
    """One that cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


@dataclass(frozen=True)
class Mistake:
    """Lines of a file that is right otherwise, what must be named in one line, and the status."""

    text: str
    names: tuple[str, ...]
    status: int
    words: tuple[str, ...] = field(default=())


MISTAKES = {
    "text for a number": Mistake(
        "[scheduler]\nmax_attempts = many\n", (":6: [scheduler] max_attempts:", "many"), OPTION
    ),
    "old spelling": Mistake(
        "[DEFAULT]\nscheduler_max_attempts = many\n", (":6: [scheduler] max_attempts:",), OPTION
    ),
    "number out of range": Mistake(
        "[scheduler]\nworkers = -1\n", ("[scheduler] workers", "0"), OPTION
    ),
    "attempts that cannot work": Mistake(
        "[scheduler]\nmax_attempts = 0\n", ("[scheduler] max_attempts", ">= 1"), OPTION
    ),
    "no choice": Mistake(
        "[DEFAULT]\nservicegroup_driver = zk\n", ("servicegroup_driver", "zk"), OPTION
    ),
    "log level": Mistake(
        "[DEFAULT]\ndefault_log_levels = amqp=LOUD\n", ("default_log_levels", "LOUD"), OPTION
    ),
    "empty host": Mistake("[DEFAULT]\nhost =\n", ("[DEFAULT] host", "empty"), OPTION),
    "option of the bus": Mistake(
        "[oslo_messaging_rabbit]\nrabbit_retry_backoff = x\n",
        ("[oslo_messaging_rabbit] rabbit_retry_backoff",),
        OPTION,
    ),
    "misspelt option": Mistake(
        "[scheduler]\nmax_attemps = 3\n",
        (":6: [scheduler] max_attemps:", "did you mean max_attempts?"),
        OPTION,
    ),
    "misspelt old option": Mistake(
        "[DEFAULT]\nscheduler_defualt_filters = RamFilter\n",
        ("scheduler_defualt_filters", "scheduler_default_filters"),
        OPTION,
    ),
    "option in another group": Mistake(
        "[scheduler]\nhost_subset_size = 3\n", ("did you mean [filter_scheduler] host_sub",), OPTION
    ),
    "misspelt group": Mistake(
        "[filter_schedular]\nhost_subset_size = 3\n",
        ("[filter_schedular] host_subset_size", "[filter_scheduler] host_subset_size"),
        OPTION,
    ),
    "dashes": Mistake("[DEFAULT]\nlog-file = x\n", ("log-file", "did you mean log_file?"), OPTION),
    "unknown bus": Mistake(
        "[DEFAULT]\ntransport_url = carrier://u:s3cret@h/\n",
        ("[DEFAULT] transport_url", "carrier"),
        OPTION,
    ),
    "cap of no release": Mistake(
        "[upgrade_levels]\nscheduler = newtn\n", ("[upgrade_levels] scheduler", "newtn"), OPTION
    ),
    "alias that is no JSON": Mistake("[pci]\nalias = {\n", ("[pci] alias",), OPTION),
    "unknown driver": Mistake(
        "[scheduler]\ndriver = filter_schedular\n",
        (":6: [scheduler] driver:", "filter_schedular", "filter_scheduler"),
        PLUGIN,
    ),
    "unknown host manager": Mistake(
        "[scheduler]\nhost_manager = nobody\n", ("[scheduler] host_manager", "nobody"), PLUGIN
    ),
    "unknown filter": Mistake(
        "[filter_scheduler]\nenabled_filters = RamFilter,RamFiltre\n",
        ("[filter_scheduler] enabled_filters", "RamFiltre"),
        PLUGIN,
    ),
    "filter of no module": Mistake(
        "[filter_scheduler]\navailable_filters = no.such.Filter\nenabled_filters =\n",
        ("[filter_scheduler] available_filters", "no.such.Filter"),
        PLUGIN,
    ),
    "filter that fails": Mistake(
        f"[filter_scheduler]\navailable_filters = {__name__}.FilterThatFails\n"
        "enabled_filters = FilterThatFails\n",
        ("[filter_scheduler] enabled_filters", "no licence"),
        PLUGIN,
    ),
    "unknown weigher": Mistake(
        "[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RAMWeiger\n",
        ("[filter_scheduler] weight_classes", "RAMWeigher"),
        PLUGIN,
    ),
    "unknown way to notify": Mistake(
        "[oslo_messaging_notifications]\ndriver = mesaging\n",
        ("[oslo_messaging_notifications] driver", "mesaging"),
        PLUGIN,
    ),
    "unknown database": Mistake(
        "[database]\nconnection = sqlight:///x\n", ("[database] connection", "sqlight"), DATABASE
    ),
    "database that is not there": Mistake(
        "[database]\nconnection = sqlite:////no/such/nova.sqlite\n",
        (":6: [database] connection:", "/no/such/nova.sqlite"),
        DATABASE,
    ),
    "database that does not answer": Mistake(
        "[database]\nconnection = mysql+pymysql://u:s3cret@127.0.0.1:1/nova\nmax_retries = 0\n",
        ("[database] connection", "127.0.0.1"),
        DATABASE,
    ),
    "placement without a login": Mistake(
        "[scheduler]\nclaims = placement\n", ("[placement] auth_type", "claims"), DATABASE
    ),
    "no logging file": Mistake(
        "[DEFAULT]\nlog_config_append = /no/such.conf\n",
        ("[DEFAULT] log_config_append", "/no/such.conf"),
        SURROUNDINGS,
    ),
    "no directory for logs": Mistake(
        "[DEFAULT]\nlog_dir = /no/such\n", ("[DEFAULT] log_dir", "/no/such"), SURROUNDINGS
    ),
    "no directory for temporary files": Mistake(
        "[DEFAULT]\ntempdir = /no/such\n", ("[DEFAULT] tempdir", "/no/such"), SURROUNDINGS
    ),
    "no JSON": Mistake(
        "[DEFAULT]\nscheduler_json_config_location = /no/such.json\n",
        ("scheduler_json_config_location", "/no/such.json"),
        SURROUNDINGS,
    ),
    "address of another machine": Mistake(
        "[metrics_endpoint]\nenabled = true\nhost = 192.0.2.1\n",
        ("[metrics_endpoint] host", "192.0.2.1"),
        SURROUNDINGS,
    ),
    "line without a value": Mistake("[scheduler]\nworkers\n", ("nova.conf", "workers"), FILE),
    "broker that does not answer": Mistake(
        "", ("[DEFAULT] transport_url", "127.0.0.1:1"), BROKER, ("--broker",)
    ),
}

Validate = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def path(tmp_path: pathlib.Path, database: object) -> pathlib.Path:
    """A configuration that is right."""
    del database
    file = tmp_path / "nova.conf"
    text = f"[DEFAULT]\n{BUS}\n[database]\nconnection = sqlite:///{tmp_path}/nova.sqlite\n"
    file.write_text(text)
    return file


@pytest.fixture
def validate(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Validate:
    """Add to the file and validate it; the status, and the lines."""

    def run(text: str, *words: str) -> tuple[int, list[str]]:
        path.write_text(path.read_text() + text)
        status = app.main(["--config-file", str(path), "config", "validate", *words])
        captured = capsys.readouterr()
        assert "s3cret" not in captured.out + captured.err
        assert "Traceback" not in captured.err
        return status, captured.out.splitlines()

    return run


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_in_one_line(validate: Validate, mistake: Mistake) -> None:
    status, lines = validate(mistake.text, *mistake.words)
    assert status == mistake.status
    [line] = lines
    assert [name for name in mistake.names if name not in line] == []


def test_all_mistakes_are_named_at_once(validate: Validate) -> None:
    together = [
        each
        for each in MISTAKES.values()
        if each.status in (OPTION, PLUGIN, SURROUNDINGS) and "\nhost" not in each.text
    ]
    singly = [each for each in together if each.text.count("=") == 1]
    kept = {each.text.splitlines()[1].partition(" =")[0]: each for each in singly}
    status, lines = validate("".join(each.text for each in kept.values()))
    assert status == OPTION
    said = "\n".join(lines)
    assert [each.names[-1] for each in kept.values() if each.names[-1] not in said] == []
    assert len(lines) == len(set(lines)) >= len(kept) - 2


def test_a_configuration_that_is_right(validate: Validate) -> None:
    assert validate("") == (exit_codes.OK, ["The configuration can be used."])


def test_files_may_be_named_after_the_command(
    path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = path.with_name("second.conf")
    second.write_text("[scheduler]\nworkers = x\n")
    words = ["config", "validate", "--config-file", str(path), "--config-file", str(second)]
    assert app.main(words) == OPTION
    assert f"{second}:2: [scheduler] workers" in capsys.readouterr().out
    missing = ["config", "validate", "--config-file", str(path.with_name("none.conf"))]
    assert app.main(missing) == FILE


def test_show(path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    path.write_text(
        path.read_text() + "[DEFAULT]\nscheduler_max_attempts = 7\n"
        "[scheduler]\nworkers = 2\n[filter_scheduler]\nhost_subset_size = 0\n"
    )
    monkeypatch.setenv("OS_SCHEDULER__MAX_INSTANCES_PER_REQUEST", "5")

    def shown(*words: str) -> dict[str, tuple[object, str]]:
        argv = ["--debug", "--config-file", str(path), "config", "show", "-f", "json", *words]
        assert app.main(argv) == exit_codes.OK
        out = capsys.readouterr().out
        assert "s3cret" not in out
        return {row["Option"]: (row["Value"], row["From"]) for row in json.loads(out)}

    found = shown()
    assert found["scheduler.max_attempts"] == (7, f"{path}:6 as [DEFAULT] scheduler_max_attempts")
    assert found["scheduler.workers"] == (2, f"{path}:8")
    assert found["scheduler.max_instances_per_request"] == (5, "environment")
    assert found["filter_scheduler.host_subset_size"] == (1, "put right by this program")
    assert found["DEFAULT.debug"] == (True, "command line")
    assert found["DEFAULT.transport_url"] == ("***", f"{path}:2")
    assert "scheduler.driver" not in found
    assert shown("scheduler.driver") == {"scheduler.driver": ("filter_scheduler", "default")}
    assert set(shown("metrics")) == {each for each in shown("--all") if each.startswith("metrics.")}


def test_show_of_a_file_that_cannot_be_used(
    path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text("[scheduler]\nworkers = x\n")
    assert app.main(["--config-file", str(path), "config", "show"]) == exit_codes.FAILURE
    assert "[scheduler] workers" in capsys.readouterr().err
