"""From the command line to a checked configuration, and every way in which that can fail."""

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading

import pytest
import sqlalchemy
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import log as oslo_log

from scheduler import concurrency, errors, exit_codes
from scheduler.conf import check, default, startup
from scheduler.rpc.context import RequestContext

PROG = "nova-scheduler"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home directory without configuration, in which the default state path may be made."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def parse(*argv, **kwargs):
    return startup.parse(startup.Source(argv, PROG, [], **kwargs), cfg.ConfigOpts())


def write(tmp_path, text):
    file = tmp_path / "nova.conf"
    file.write_text(text)
    return str(file)


def end_of(*argv):
    with pytest.raises(SystemExit) as ended:
        parse(*argv)
    return ended.value.code


def test_dropped_command_line_options_have_no_effect(home, capsys):
    switches = ("-v", "--verbose", "--noverbose", "--watch-log-file", "--log-format", "%(message)s")
    address = ("--remote_debug-host", "h", "--remote_debug-port", "5678")
    assert parse(*switches, *address).debug is False
    assert capsys.readouterr().err == ""


def test_bad_value_in_the_environment_names_the_variable(home, capsys, monkeypatch):
    monkeypatch.setenv("OS_SCHEDULER__WORKERS", "many")
    assert end_of() == exit_codes.CONFIGURATION
    assert "OS_SCHEDULER__WORKERS" in capsys.readouterr().err


def test_unusable_places_are_named(tmp_path, home, capsys):
    for argv in (
        ["--config-file", str(tmp_path)],
        ["--config-dir", str(tmp_path / "missing.d")],
    ):
        assert end_of(*argv) == exit_codes.CONFIGURATION
        err = capsys.readouterr().err
        assert err.startswith(f"{PROG}: error: ")
        assert err.count("\n") == 1
        assert argv[1] in err


def test_bad_value_is_also_in_the_log_file(tmp_path, home):
    log = tmp_path / "scheduler.log"
    file = write(tmp_path, "[DEFAULT]\nlogging_default_format_string = %(nope)s\n")
    assert end_of("--config-file", file, "--log-file", str(log)) == exit_codes.CONFIGURATION
    assert " CRITICAL " in log.read_text()


def test_no_text_makes_a_line_of_its_own_in_the_log(tmp_path, home):
    log = tmp_path / "log"
    parse("--log-file", str(log))
    forged = "a\n2026-01-01 00:00:00.000 1 CRITICAL root [forged\x1b[2J\0\u2028"
    begun_at = len(log.read_text())
    RequestContext("u", "p", request_id=forged)
    try:
        raise RuntimeError(forged)
    except RuntimeError:
        logging.getLogger("scheduler").exception("said: %s", forged)
    finally:
        RequestContext()
    text = log.read_text()[begun_at:]
    assert all(" ERROR scheduler " in line for line in text.splitlines())
    assert text.replace("\n", "").isprintable()
    assert "Traceback" in text


def test_errors_of_databases_are_told_without_a_link(tmp_path, home):
    log = tmp_path / "log"
    parse("--log-file", str(log))
    engine = sqlalchemy.create_engine("sqlite://")
    link, logger = "(Background on this error at: ", logging.getLogger("scheduler")
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError) as error:
        connection.exec_driver_sql("SELECT nothing")
    assert link in str(error.value)
    logger.error("said: %s", error.value, exc_info=error.value)
    logger.error("said: %s", error.value)
    text = log.read_text()
    assert text.endswith("[SQL: SELECT nothing]\n")
    assert link not in text


def test_a_login_without_keystone_is_read_without_a_word(tmp_path, home, caplog):
    file = write(tmp_path, "[placement]\nauth_type = noauth\n[neutron]\nauth_type = password\n")
    conf = parse("--config-file", file)
    assert "Could not load noauth" not in caplog.messages
    assert conf.neutron.username is None


LOGGING_FILE = """[loggers]
keys = root, own
[logger_root]
handlers = plain
[logger_own]
qualname = scheduler
propagate = 0
handlers = own
[handlers]
keys = plain, own
[handler_plain]
class = StreamHandler
[handler_own]
class = StreamHandler
formatter = own
[formatters]
keys = own
[formatter_own]
format = own %(message)s
"""
FORGING = """import logging
from scheduler.conf import startup
startup.parse(startup.Source(["--config-file", "nova.conf"], "nova-scheduler"))
for name in ("amqp", "scheduler"):
    logging.getLogger(name).error("a%s", "\\nb\\x1b[2J")
"""


def test_nor_in_logs_of_a_logging_file(tmp_path, home):
    """In a process of its own, which the file belongs to."""
    (tmp_path / "logging.conf").write_text(LOGGING_FILE)
    (tmp_path / "nova.conf").write_text("[DEFAULT]\nlog_config_append = logging.conf\n")
    command = [sys.executable, "-c", FORGING]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-2:] == [r"a\nb\x1b[2J", r"own a\nb\x1b[2J"]


LOGGING = """from scheduler import concurrency
concurrency.activate({backend!r})
from scheduler.conf import startup
startup.parse(startup.Source((), "nova-scheduler", []))
for number in range(100):
    startup.LOG.warning("a line")
"""


@pytest.fixture
def full_pipe():
    reading_end, writing_end = os.pipe()
    os.set_blocking(writing_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing_end, bytes(select.PIPE_BUF))
    os.set_blocking(writing_end, True)
    yield writing_end
    os.close(reading_end)
    os.close(writing_end)


@pytest.mark.parametrize("backend", [concurrency.EVENTLET, concurrency.THREADING])
def test_a_log_that_nobody_reads_stops_nobody(home, full_pipe, backend):
    command = [sys.executable, "-c", LOGGING.format(backend=backend)]
    subprocess.run(command, stderr=full_pipe, check=True, timeout=30)


def test_standard_error_without_room_ends_nobody(home):
    command = [sys.executable, "-c", LOGGING.format(backend=concurrency.THREADING)]
    with open("/dev/full", "w", encoding="ascii") as full:
        subprocess.run(command, stderr=full, check=True, timeout=30)


@pytest.mark.parametrize(("group", "name", "minimum"), check.MINIMA)
def test_value_below_an_old_minimum_is_clamped(tmp_path, home, group, name, minimum):
    log = tmp_path / "log"
    file = write(tmp_path, f"[{group}]\n{name} = {minimum - 1}\n")
    conf = parse("--config-file", file, "--log-file", str(log))
    value = conf[name] if group == "DEFAULT" else conf[group][name]
    assert value == minimum
    warnings = [line for line in log.read_text().splitlines() if " WARNING " in line]
    assert len(warnings) == 1
    assert name in warnings[0]


@pytest.mark.parametrize(
    ("interval", "down_time", "expected"),
    [(10, 60, 60), (10, 10, 25), (30, 20, 75), (0, 1, 1), (0, 0, 60)],
)
def test_service_down_time_exceeds_the_report_interval(
    tmp_path, home, interval, down_time, expected
):
    text = f"[DEFAULT]\nreport_interval = {interval}\nservice_down_time = {down_time}\n"
    assert parse("--config-file", write(tmp_path, text)).service_down_time == expected


@pytest.mark.parametrize(
    ("text", "first", "count"),
    [
        ("", "RetryFilter", 9),
        ("[scheduler]\nclaims = placement\n", "ComputeFilter", 5),
        ("[scheduler]\nclaims = placement\n[filter_scheduler]\nenabled_filters = A\n", "A", 1),
    ],
)
def test_the_default_chain_follows_the_claims(tmp_path, home, text, first, count):
    chain = parse("--config-file", write(tmp_path, text)).filter_scheduler.enabled_filters
    assert (chain[0], len(chain)) == (first, count)


def test_one_configuration_parsed_twice_takes_the_second_files(tmp_path, home):
    conf = cfg.ConfigOpts()
    file = write(tmp_path, "[scheduler]\nworkers = 2\n")
    startup.parse(startup.Source(["--config-file", file], PROG), conf)
    startup.parse(startup.Source([], PROG, []), conf)
    assert conf.scheduler.workers is None


def test_files_used(tmp_path, home):
    file = write(tmp_path, "[DEFAULT]\n")
    directory = tmp_path / "conf.d"
    directory.mkdir()
    for name in ("b.conf", "a.conf", "ignored.txt"):
        (directory / name).write_text("[DEFAULT]\n")
    conf = parse("--config-file", file, "--config-dir", str(directory))
    assert startup.used_files(conf) == [file, str(directory / "a.conf"), str(directory / "b.conf")]
    assert not startup.is_embedded(conf, {})


def test_embedded_means_that_nothing_is_configured(home):
    conf = parse()
    assert startup.is_embedded(conf, {})
    assert not startup.is_embedded(conf, {"OS_DEFAULT__TRANSPORT_URL": "rabbit://"})


def test_state_path_is_the_packages_one_only_if_this_user_may_write_there(
    home, tmp_path, monkeypatch
):
    monkeypatch.setattr(default, "PACKAGED_STATE_PATH", str(tmp_path / "not-there"))
    assert parse().state_path == str(home / ".local/share/nova-scheduler")
    monkeypatch.setattr(default, "PACKAGED_STATE_PATH", str(tmp_path))
    assert parse().state_path == str(tmp_path)


def test_forms_of_log_lines_may_name_all_that_a_context_has(tmp_path, home, monkeypatch):
    library, before = oslo_context.RequestContext, oslo_context.get_current()
    parse()
    assert oslo_context.get_current() is before  # the check leaves no context in the thread
    values = library.get_logging_values
    monkeypatch.setattr(library, "get_logging_values", lambda self: {**values(self), "newer": 1})
    form = " ".join(f"%({name})s" for name in RequestContext().get_logging_values())
    parse("--config-file", write(tmp_path, f"[DEFAULT]\nlogging_context_format_string = {form}\n"))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", "[req-1 alice acme - - -] hello"),
        (
            "[DEFAULT]\nlogging_user_identity_format = %(user)s %(tenant)s\n",
            "[req-1 alice acme] hello",
        ),
        (
            "[DEFAULT]\nlogging_context_format_string = %(threadName)s %(message)s\n",
            "asking hello",
        ),
        ("[DEFAULT]\nuse_json = true\n", '"thread_name": "asking"'),
    ],
)
def test_log_lines_have_the_usual_shape(tmp_path, home, text, shape):
    log = tmp_path / "log"
    parse("--config-file", write(tmp_path, text), "--log-file", str(log))
    # The context stays with its thread.
    caller = threading.Thread(target=_say_hello_for_alice, name="asking")
    caller.start()
    caller.join()
    assert shape in log.read_text()


def _say_hello_for_alice():
    oslo_context.RequestContext(request_id="req-1", user_id="alice", project_id="acme")
    oslo_log.getLogger("scheduler.test").info("hello")


OLD_FILE = "[DEFAULT]\nscheduler_max_attempts = 4\nscheduler_host_subset_size = 0\n"


@pytest.mark.parametrize(("more", "warns"), [([], False), (["--debug"], True)])
def test_quiet_programs_warn_only_when_debugging(tmp_path, home, capsys, more, warns):
    conf = parse("--config-file", write(tmp_path, OLD_FILE), *more, is_daemon=False)
    assert conf.filter_scheduler.host_subset_size == 1
    err = capsys.readouterr().err
    assert ("host_subset_size is 0" in err) is warns
    assert bool(err) is warns


OLD_NAMES = "# of Havana\n[DEFAULT]\nlogdir = .\n[DEFAULT]\nscheduler_max_attempts = 4\n"
PARSING = """import sys
from scheduler.conf import startup
startup.parse(startup.Source(sys.argv[1:], "nova-scheduler"))
"""


def test_names_of_older_releases_are_told_with_file_and_line(tmp_path):
    """In a process of its own: the library tells of each name once in a process."""
    file = write(tmp_path, OLD_NAMES)
    command = [sys.executable, "-c", PARSING, "--config-file", file]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (log,) = tmp_path.glob("*.log")
    told = done.stderr + log.read_text()
    for line, name in {3: "logdir", 5: "scheduler_max_attempts"}.items():
        assert f'{file}:{line}: Option "{name}" from group "DEFAULT" is deprecated. Use ' in told
    assert "Deprecated: " not in told


def test_an_error_is_said_once_in_a_line(tmp_path, home):
    log = tmp_path / "log"
    parse("--log-file", str(log))
    try:
        raise errors.ConfigurationError(option="[x] y", reason="no such thing")
    except errors.NovaException as error:
        logging.getLogger("scheduler").error("It stays as it was: %s", error)
        logging.getLogger("scheduler").error("It cannot be used")
    lines = log.read_text().splitlines()[-2:]
    assert lines[0].endswith("It stays as it was: Invalid configuration: [x] y: no such thing")
    assert lines[1].endswith("used: nova.exception.ConfigurationError: " + lines[0][-43:])
