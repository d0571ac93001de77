"""A newcomer's way, word for word: README and the page on operating, in a fresh clone."""

import pytest

from tests import console, pages
from tests.packages.overlay import run, run_inside
from tests.world.deployment import render

pytestmark = [pytest.mark.packages, pytest.mark.timeout(3600)]

README = pages.ROOT / "README.md"
OPERATE = pages.ROOT / "docs" / "operate.md"
#: Of the page: the daemon makes the queues.
STATUS = {"nova-scheduler-manage broker check": 14}
#: No systemd runs in the overlay.
SCRIPT = """
systemctl() {{ echo "systemctl $*"; }}
cd /root/clone
make demo
{install}
cp mine.conf /etc/nova/nova.conf
{first_start}
make venv
{quickstart}
kill $(jobs -p)
wait
"""


def part(name):
    """The commands of a part of the page; each must end as it says there."""
    texts = [each.text for each in console.commands(OPERATE, name)]
    assert texts
    return "\n".join(
        f"{each} || test $? = {STATUS[each]}" if each in STATUS else each for each in texts
    )


def test_the_pages_word_for_word(tmp_path, transport_url, mariadb_url):
    files = tmp_path / "files"
    run("git", "clone", "--quiet", str(pages.ROOT), str(files / "clone"), cwd=tmp_path, seconds=60)
    settings = pages.settings(OPERATE, "configure")
    assert settings["DEFAULT"].pop("transport_url").startswith("rabbit://")
    assert settings["database"].pop("connection").startswith("mysql+pymysql://")
    settings["DEFAULT"]["transport_url"] = transport_url
    settings["database"]["connection"] = mariadb_url
    (files / "clone/mine.conf").write_text(render(settings), encoding="utf-8")
    quickstart = pages.commands(README, "quickstart")
    shown = "rabbit://guest:guest@localhost:5672/"
    assert "make demo " in README.read_text(encoding="utf-8")
    assert shown in quickstart

    printed = run_inside(
        tmp_path,
        SCRIPT.format(
            install=part("install"),
            first_start=part("first start"),
            quickstart=quickstart.replace(shown, transport_url),
        ),
        seconds=1800,
    )

    assert printed.count("✔") == 7
    assert "systemctl daemon-reload" in printed
    assert "/usr/local/lib/systemd/system/nova-scheduler.service" in printed
    assert printed.rpartition("Ready: ")[2].count("ACTIVE") == 5
