"""The Debian package: built, installed over another scheduler, run and removed."""

import pytest

from tests.house.tree import ROOT
from tests.packages.overlay import run, run_inside
from tests.servers import programs
from tests.servers.fixtures import require

pytestmark = [pytest.mark.packages, pytest.mark.timeout(3600)]

NAME = "nova-scheduler-standalone"
OTHER = """Package: nova-scheduler
Version: 3:26.2.2-1
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: the one that it takes the place of
"""
SCRIPT = """
cd /root
dpkg -i other.deb
dpkg -i nova-scheduler-standalone_*.deb
dpkg-query -W -f '${Package} ${db:Status-Status}\\n' 'nova-scheduler*'
nova-scheduler --version
id -un nova
stat -c '%n %U:%G %a' /etc/nova /etc/nova/scheduler.d /var/lib/nova /var/log/nova
grep -h ^ExecStart= /usr/lib/systemd/system/nova-*.service
systemd-analyze verify --man=no /usr/lib/systemd/system/nova-scheduler.service
test -s /usr/share/nova-scheduler/nova.conf.sample
HOME=/root /opt/venvs/nova-scheduler/bin/python -m conductor_stub.demo
dpkg --purge nova-scheduler-standalone
test ! -e /usr/bin/nova-scheduler
test ! -e /opt/venvs/nova-scheduler
"""


def test_it_installs_runs_and_goes(tmp_path):
    require((programs.DH_VIRTUALENV,))
    files = tmp_path / "files"
    built = run(str(ROOT / "packaging/build-deb"), str(files), cwd=tmp_path, seconds=3000)
    assert built.split("\n")[-2].endswith(".deb")
    other = tmp_path / "other/DEBIAN"
    other.mkdir(parents=True)
    (other / "control").write_text(OTHER, encoding="utf-8")
    run("dpkg-deb", "--build", str(other.parent), "other.deb", cwd=files, seconds=60)

    printed = run_inside(tmp_path, SCRIPT, seconds=300)

    lines = printed.split("\n")
    assert f"{NAME} installed" in lines
    assert "nova-scheduler installed" not in lines
    for place, owner in {
        "/etc/nova": "root:nova 750",
        "/etc/nova/scheduler.d": "root:nova 750",
        "/var/lib/nova": "nova:nova 750",
        "/var/log/nova": "nova:nova 750",
    }.items():
        assert f"{place} {owner}" in lines
    assert "ExecStart=/usr/bin/nova-scheduler --config-file=/etc/nova/nova.conf" in lines
    assert printed.count("ExecStart=/usr/bin/nova-") == 3
    assert printed.count("✔") == 7
