"""What a process tells of itself on a signal."""

import gc
import os
import signal
from types import SimpleNamespace

import pytest
from oslo_config import cfg

import scheduler
from scheduler import conf as project_options
from scheduler import errors
from scheduler.conf import startup
from scheduler.daemon.reports import DECISIONS_SHOWN, Report, Reports
from scheduler.db.cells import CellHealth
from scheduler.explain.recorder import Recorder
from scheduler.hosts.reservations import Reservations
from scheduler.rpc.in_flight import InFlightRequests
from tests.builders import NOW, a_fleet, a_request
from tests.waiting import wait_until

SECRET = "k3epq!et"


class Hosts:
    """A host manager as far as reports look at it."""

    state_age_seconds = 1.23
    is_failing = False
    service_down_time_seconds = 60.0

    def __init__(self):
        self.table = a_fleet({}, {})
        self.reservations = Reservations(self.table)

    def clock(self):
        return NOW

    def cell_health(self):
        return [CellHealth("u1", "east", True, 2, None, "no answer in time")]


@pytest.fixture(autouse=True)
def as_before():
    handler = signal.getsignal(signal.SIGUSR2)
    gc.freeze()  # a report looks at every object, of which other tests have left many
    yield
    gc.unfreeze()
    signal.signal(signal.SIGUSR2, handler)
    Report.persistent_sections = []
    cfg.CONF.reset()


def a_conf(tmp_path, **more):
    """The process-wide options, with secrets in them; reports go to the folder."""
    lines = [
        "[DEFAULT]",
        f"transport_url = rabbit://nova:{SECRET}@broker/",
        "[database]",
        f"connection = mysql+pymysql://nova:{SECRET}@db/nova",
        "[oslo_reports]",
        f"log_dir = {tmp_path}",
        *(f"{name} = {value}" for name, value in more.items()),
    ]
    path = tmp_path / "nova.conf"
    path.write_text("\n".join(lines), encoding="utf-8")
    project_options.register_all(cfg.CONF)
    startup.report_options.set_defaults(cfg.CONF)
    cfg.CONF(["--config-file", str(path)], project="nova")
    return cfg.CONF


def a_manager(hosts, recorder=None):
    return SimpleNamespace(
        driver=SimpleNamespace(host_manager=hosts), recorder=recorder or Recorder()
    )


def written(folder):
    (path,) = folder.glob("prog_gurumeditation_*")
    assert path.name.endswith(f"_{os.getpid()}")
    return path.read_text(encoding="utf-8")


def reported(folder):
    """What is written when the signal comes now."""
    os.kill(os.getpid(), signal.SIGUSR2)
    return written(folder)


def test_a_worker(tmp_path):
    reports, in_flight, recorder = Reports(), InFlightRequests(), Recorder()
    reports.install(a_conf(tmp_path), "prog")
    reports.begin(in_flight, lambda: a_manager(Hosts(), recorder))
    context = SimpleNamespace(request_id="req-7")
    for number in range(DECISIONS_SHOWN + 5):
        with recorder.decision("FilterScheduler", context, a_request(), [f"uuid-{number}"]) as one:
            one.chosen = [(f"h{number}", None)]
    with in_flight.request("select_destinations", "req-8"):
        text = reported(tmp_path)
    for wanted in (
        "up = 2",
        "state age (s) = 1.2",
        "cell east (u1) left out: no answer in time, 2 failures",
        "1 in flight",
        "select_destinations req-8: began",
        "req-7 Placement of 1 instance(s) [uuid-24]: selected [h24]",
        "req-7 Placement of 1 instance(s) [uuid-5]: selected [h5]",
        "max_state_age_seconds = 60",
        f"version = {scheduler.__version__}",
        "test_reports.py",
    ):
        assert wanted in text, wanted
    assert "[uuid-4]" not in text, "only the last ones"


def test_without_a_worker_and_with_secrets(tmp_path):
    Reports().install(a_conf(tmp_path), "prog")

    def careless():
        return f"their_url = http://admin:{SECRET}@x/ and password = {SECRET}"

    Report.register_section("Careless", careless)
    text = reported(tmp_path)
    for wanted in ("  connection = ***", "their_url = http://admin:***@x/", "none in this process"):
        assert wanted in text
    assert "0 in flight" in text
    assert SECRET not in text


def test_a_broken_section_leaves_the_others(tmp_path):
    reports = Reports()
    reports.install(a_conf(tmp_path), "prog")
    reports.begin(InFlightRequests(), lambda: a_manager(SimpleNamespace(table=None)))
    text = reported(tmp_path)
    assert "not available: AttributeError" in text
    assert "Last decisions" in text


@pytest.mark.parametrize(
    ("folder", "told"),
    [(None, "Guru Meditation"), ("/nonexistent", "No report could be written: ")],
)
def test_on_standard_error(capfd, folder, told):
    Report.handle_signal(None, "prog", folder, None)
    assert told in capfd.readouterr().err


def test_a_file_instead_of_the_signal(tmp_path):
    watched = tmp_path / "touch-me"
    watched.touch()
    before = signal.getsignal(signal.SIGUSR2)
    reports, conf = Reports(), a_conf(tmp_path, file_event_handler=str(watched))
    reports.install(conf, "prog")
    assert signal.getsignal(signal.SIGUSR2) is before
    reports.begin(InFlightRequests(), lambda: None)

    def is_told():
        os.utime(watched, (2**32, 2**32))
        found = [each.read_text("utf-8") for each in tmp_path.glob("prog_gurumeditation_*")]
        return any("0 in flight" in each for each in found)

    wait_until(is_told)


def test_a_file_that_is_not_there(tmp_path):
    conf = a_conf(tmp_path, file_event_handler="/nonexistent")
    with pytest.raises(errors.ConfigurationError, match=r"file_event_handler.*/nonexistent"):
        Reports().install(conf, "prog")
