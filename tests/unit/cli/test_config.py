"""``config validate`` names mistakes; ``config show`` says where values come from.

More mistakes, with the real programs: functional/test_mistakes.
"""

import json
import pathlib
import re
from dataclasses import dataclass

import pytest

from scheduler import exit_codes
from scheduler.cli import app
from scheduler.filters.base import BaseHostFilter

OPTION, PLUGIN = exit_codes.CONFIG_OPTION, exit_codes.CONFIG_PLUGIN
DATABASE, SURROUNDINGS = exit_codes.CONFIG_DATABASE, exit_codes.CONFIG_SURROUNDINGS
FILE = exit_codes.CONFIG_FILE

BUS = "transport_url = rabbit://user:s3cret@127.0.0.1:1/"


class FilterThatFails(BaseHostFilter):
    """One that cannot be made."""

    def __init__(self):
        raise RuntimeError("no licence")


@dataclass(frozen=True)
class Mistake:
    """Lines of a file that is right otherwise, what must be named in one line, and the status."""

    text: str
    names: tuple[str, ...]
    status: int


#: What is wrong: the group, then lines of it. Below, what the line of output names.
OPTIONS = """
[scheduler] workers = -1
    :6: [scheduler] workers | 0
[scheduler] claims = databse
    :6: [scheduler] claims | 'databse'
[scheduler] cell_uuid = x
    [scheduler] cell_uuid | x
[DEFAULT] servicegroup_driver = zk
    servicegroup_driver | zk
[DEFAULT] default_log_levels = amqp=LOUD
    default_log_levels | LOUD
[DEFAULT] logging_context_format_string = %(nope)s
    :6: [DEFAULT] logging_context_format_string: | 'nope'
[DEFAULT] logging_debug_format_suffix = 100%
    :6: [DEFAULT] logging_debug_format_suffix: | incomplete format
[DEFAULT] logging_exception_prefix = %(nope)s
    :6: [DEFAULT] logging_exception_prefix: | 'nope'
[DEFAULT] logging_user_identity_format = %(user
    :6: [DEFAULT] logging_user_identity_format: | incomplete format key
[filter_scheduler] ram_weight_multiplier = nan
    :6: [filter_scheduler] ram_weight_multiplier: | nan
[oslo_messaging_rabbit] rabbit_retry_backoff = x
    [oslo_messaging_rabbit] rabbit_retry_backoff
[DEFAULT] scheduler_defualt_filters = RamFilter
    scheduler_defualt_filters: no such option; did you mean | scheduler_default_filters?
[DEFAULT] log-file = x
    log-file | did you mean log_file?
"""
PLUGINS = f"""
[scheduler] host_manager = nobody
    [scheduler] host_manager | nobody
[filter_scheduler] available_filters = no.such.Filter; enabled_filters =
    [filter_scheduler] available_filters | no.such.Filter
[filter_scheduler] available_filters = {__name__}.FilterThatFails; enabled_filters = FilterThatFails
    [filter_scheduler] enabled_filters | no licence
[oslo_messaging_notifications] driver = mesaging
    [oslo_messaging_notifications] driver | mesaging
"""
DATABASES = """
[database] connection = sqlite:////no/such/nova.sqlite
    :6: [database] connection: | /no/such/nova.sqlite
[scheduler] claims = placement
    [placement] auth_type | claims
"""
OTHERS = """
[DEFAULT] log_dir = /no/such
    [DEFAULT] log_dir | /no/such
[DEFAULT] tempdir = /no/such
    [DEFAULT] tempdir | /no/such
[DEFAULT] scheduler_json_config_location = /no/such.json
    scheduler_json_config_location | /no/such.json
"""


def mistakes(table, status):
    found = {}
    lines = table.strip().splitlines()
    for wrong, named in zip(lines[::2], lines[1::2], strict=True):
        group, _space, options = wrong.partition(" ")
        text = "\n".join([group, *options.split("; "), ""])
        found[wrong] = Mistake(text, tuple(named.strip().split(" | ")), status)
    return found


MISTAKES = {
    **mistakes(OPTIONS, OPTION),
    **mistakes(PLUGINS, PLUGIN),
    **mistakes(DATABASES, DATABASE),
    **mistakes(OTHERS, SURROUNDINGS),
}


@pytest.fixture
def path(config_file, tmp_path, database):
    """A configuration that is right, in the file that commands are run with."""
    del database
    file = pathlib.Path(config_file)
    text = f"[DEFAULT]\n{BUS}\n[database]\nconnection = sqlite:///{tmp_path}/nova.sqlite\n"
    file.write_text(text)
    return file


@pytest.fixture
def validate(path, run):
    """Add to the file and validate it; the status, and the lines."""

    def validate(text):
        path.write_text(path.read_text() + text)
        status, out, err = run("config", "validate")
        assert "s3cret" not in out + err
        assert "Traceback" not in err
        return status, out.splitlines()

    return validate


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_in_one_line(validate, mistake):
    status, lines = validate(mistake.text)
    assert status == mistake.status
    [line] = lines
    assert [name for name in mistake.names if name not in line] == []


def test_all_mistakes_are_named_at_once(validate):
    together = [each for each in MISTAKES.values() if each.status in (OPTION, PLUGIN, SURROUNDINGS)]
    singly = [each for each in together if each.text.count("=") == 1]
    kept = {each.text.splitlines()[1].partition(" =")[0]: each for each in singly}
    status, lines = validate("".join(each.text for each in kept.values()))
    assert status == OPTION
    said = "\n".join(lines)
    assert [each.names[-1] for each in kept.values() if each.names[-1] not in said] == []
    assert len(lines) == len(set(lines)) >= len(kept) - 2


@pytest.mark.parametrize(
    ("text", "status", "line"),
    [
        ("debug = maybe", OPTION, "nova.conf:6: [DEFAULT] debug: 'maybe'"),
        ("[scheduler", FILE, "nova.conf:6: Invalid section"),
    ],
)
def test_what_cannot_be_read_is_named_alone(validate, text, status, line):
    found, [said] = validate(f"[DEFAULT]\n{text}\n[scheduler]\nworkers = -1\n")
    assert (found, line in said) == (status, True)


RIGHT = "The configuration can be used. The message broker was not tried; --broker does."
TOKEN = "[placement]\nauth_type = admin_token\nendpoint = http://p\ntoken = s3cret\n"


@pytest.mark.parametrize("text", ["", TOKEN])
def test_a_configuration_that_is_right(validate, text):
    assert validate(text) == (exit_codes.OK, [RIGHT])


def test_an_indented_line_is_asked_about_but_not_in_a_list(path, run):
    """It belongs to the option before it, so an option there has no effect."""
    wanted = "[filter_scheduler]\nenabled_filters = RamFilter,\n  DiskFilter\n"
    path.write_text(f"{path.read_text()}[DEFAULT]\nhost = me\n my_secret = s3cret\n{wanted}")
    status, out, err = run("config", "validate")
    assert (status, out.splitlines()) == (exit_codes.OK, [RIGHT])
    reason = "an indented line below it belongs to its value"
    assert f"question: {path}:6: [DEFAULT] host: {reason}\n" == err


def test_files_may_be_named_after_the_command(path, capsys):
    second = path.with_name("second.conf")
    second.write_text("[scheduler]\nworkers = x\n")
    words = ["config", "validate", "--config-file", str(path), "--config-file", str(second)]
    assert app.main(words) == OPTION
    assert f"{second}:2: [scheduler] workers" in capsys.readouterr().out
    missing = ["config", "validate", "--config-file", str(path.with_name("none.conf"))]
    assert app.main(missing) == FILE


def test_show(path, capsys, monkeypatch):
    path.write_text(
        path.read_text() + "[DEFAULT]\nscheduler_max_attempts = 7\n"
        f"[scheduler]\nworkers = 2\n[filter_scheduler]\nhost_subset_size = 0\n{TOKEN}"
    )
    monkeypatch.setenv("OS_SCHEDULER__MAX_INSTANCES_PER_REQUEST", "5")

    meanings = {}

    def shown(*words):
        argv = ["--debug", "--config-file", str(path), "config", "show", "-f", "json", *words]
        assert app.main(argv) == exit_codes.OK
        out = capsys.readouterr().out
        assert "s3cret" not in out
        found = json.loads(out)
        meanings.update({row["option"]: row.get("meaning") for row in found})
        return {row["option"]: (row["value"], row["from"]) for row in found}

    found = shown()
    assert found["scheduler.max_attempts"] == (7, f"{path}:6 as [DEFAULT] scheduler_max_attempts")
    assert found["scheduler.workers"] == (2, f"{path}:8")
    assert found["scheduler.max_instances_per_request"] == (5, "environment")
    assert found["filter_scheduler.host_subset_size"] == (1, "put right by this program")
    assert found["DEFAULT.debug"] == (True, "command line")
    assert found["DEFAULT.transport_url"] == (
        "rabbit://user:***@127.0.0.1:1/",
        f"{path}:2",
    )
    assert found["placement.token"] == ("***", f"{path}:14")
    assert "scheduler.driver" not in found
    assert found["filter_scheduler.enabled_filters"][1] == "default"
    assert shown("scheduler.driver") == {"scheduler.driver": ("filter_scheduler", "default")}
    shown("transport_url")
    assert re.fullmatch(r"The network address [^.]*\.", meanings["DEFAULT.transport_url"])
    assert set(shown("metrics")) == {each for each in shown("--all") if each.startswith("metrics.")}


def test_show_of_a_file_that_cannot_be_used(path, refused):
    path.write_text("[scheduler]\nworkers = x\n")
    assert "[scheduler] workers" in refused("config", "show")
