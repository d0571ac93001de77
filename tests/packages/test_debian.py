"""The Debian package: built, installed over another scheduler, run and removed.

The root file system of the machine is there below an overlay, in namespaces of the test's own.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT
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
#: Makes the overlay, and runs the script in it.
INSIDE = """set -e
mkdir -p upper/new upper/work root
mount -t tmpfs tmpfs upper
mkdir upper/new upper/work
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper/new,workdir=$PWD/upper/work" root
mount --bind /dev root/dev
mount -t proc proc root/proc
cp ./*.deb script root/root/
chroot root sh -e /root/script
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


def run(*command: str, cwd: Path, seconds: int) -> str:
    done = subprocess.run(
        command, cwd=cwd, timeout=seconds, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-20_000:]
    return done.stdout


def test_it_installs_runs_and_goes(tmp_path: Path) -> None:
    require((programs.DH_VIRTUALENV, programs.UNSHARE))
    built = run(str(ROOT / "packaging/build-deb"), str(tmp_path), cwd=tmp_path, seconds=3000)
    assert built.split("\n")[-2].endswith(".deb")
    other = tmp_path / "other/DEBIAN"
    other.mkdir(parents=True)
    (other / "control").write_text(OTHER, encoding="utf-8")
    run("dpkg-deb", "--build", str(other.parent), "other.deb", cwd=tmp_path, seconds=60)
    shutil.rmtree(other.parent)
    (tmp_path / "script").write_text(SCRIPT, encoding="utf-8")

    own = ("unshare", "--mount", "--pid", "--fork", "bash", "-c", INSIDE)
    printed = run(*own, cwd=tmp_path, seconds=300)

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
