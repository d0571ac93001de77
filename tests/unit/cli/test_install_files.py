"""What the daemon needs on a host is put where the host looks for it."""

import json
import pathlib

import pytest

from scheduler.cli import app
from scheduler.cli.install_files import NEXT, STUBS

WHERE = {
    "systemd": ("usr/local/lib/systemd/system/nova-scheduler.service", "[Unit]"),
    "accounts": ("usr/local/lib/sysusers.d/nova-scheduler.conf", "u     nova"),
    "folders": ("usr/local/lib/tmpfiles.d/nova-scheduler.conf", "/etc/nova/scheduler.d"),
    "logs": ("etc/logrotate.d/nova-scheduler", "/var/log/nova/*.log"),
    "sample": ("usr/local/share/nova-scheduler/nova.conf.sample", "[filter_scheduler]"),
    "alerts": (
        "usr/local/share/nova-scheduler/prometheus/nova-scheduler.rules.yml",
        "alert: NovaScheduler",
    ),
    "links of the alerts": (
        "usr/local/share/nova-scheduler/prometheus/nova-scheduler.rules.yml",
        "runbook_url: file:///usr/local/share/doc/nova-scheduler/runbooks.md#novaschedulergone",
    ),
    "runbooks": ("usr/local/share/doc/nova-scheduler/runbooks.md", "## NovaSchedulerGone"),
    "dashboard": ("usr/local/share/nova-scheduler/grafana/nova-scheduler.json", '"panels"'),
    "manual": ("usr/local/share/man/man8/nova-scheduler.8", "/etc/nova/nova.conf"),
    "completion": (
        "usr/local/share/bash-completion/completions/nova-scheduler-manage",
        "install-files",
    ),
}


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def install(root, *words):
    return app.main(["install-files", "--root", str(root), *words])


@pytest.mark.parametrize(("path", "text"), WHERE.values(), ids=WHERE)
def test_files_are_where_the_host_looks(tmp_path, path, text):
    assert install(tmp_path) == 0
    assert text in (tmp_path / path).read_text(encoding="utf-8")
    assert not list(tmp_path.rglob("*-stub.service"))


def test_for_a_package(tmp_path):
    """Its own prefix, its own programs, and the stubs."""
    words = ("--prefix", "/usr", "--programs", "/usr/bin", "--stubs", "--unit", "other")
    assert install(tmp_path, *words) == 0
    folder = tmp_path / "usr/lib/systemd/system"
    names = {"other.service", *(pathlib.Path(source).name for source, _folder in STUBS)}
    assert {path.name for path in folder.iterdir()} == names
    for unit in folder.iterdir():
        assert "\nExecStart=/usr/bin/nova-" in unit.read_text(encoding="utf-8")


def test_every_alert_links_to_the_page_that_is_published(tmp_path):
    page = "https://docs.example/runbooks.html"
    assert install(tmp_path, "--runbooks", page) == 0
    alerts = (tmp_path / WHERE["alerts"][0]).read_text(encoding="utf-8")
    assert alerts.count(f"runbook_url: {page}#") == alerts.count("- alert:") > 1
    assert "runbook_url: runbooks" not in alerts


def test_again_renews_all_but_what_was_changed_below_etc(tmp_path, capsys):
    install(tmp_path)
    unit, rotation = (tmp_path / WHERE[name][0] for name in ("systemd", "logs"))
    for path in (unit, rotation):
        path.write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert install(tmp_path) == 0
    assert unit.read_text(encoding="utf-8") != "mine"
    assert rotation.read_text(encoding="utf-8") == "mine"
    printed = capsys.readouterr().out
    assert f"kept {rotation}\n" in printed
    assert NEXT not in printed, "nothing was done to this machine"
    assert install(tmp_path, "-f", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {"done": "kept", "file": str(rotation)} in told
    assert {"done": "installed", "file": str(unit)} in told


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "usr").write_text("a file")
    assert install(tmp_path) == 1
    path = tmp_path / WHERE["systemd"][0]
    assert capsys.readouterr().err == f"nova-scheduler-manage: error: {path}: Not a directory\n"
