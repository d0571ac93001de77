"""The root file system of this machine below an overlay, in namespaces of a test's own."""

import subprocess
from pathlib import Path

from tests.servers import programs
from tests.servers.fixtures import require

#: Makes the overlay, and runs the script in it.
_INSIDE = """set -e
mkdir -p upper root
mount -t tmpfs tmpfs upper
mkdir upper/new upper/work
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper/new,workdir=$PWD/upper/work" root
mount --bind /dev root/dev
mount -t proc proc root/proc
cp -r ./files/. script root/root/
HOME=/root chroot root bash -e /root/script
"""


def run(*command: str, cwd: Path, seconds: int) -> str:
    done = subprocess.run(
        command, cwd=cwd, timeout=seconds, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-20_000:]
    return done.stdout


def run_inside(folder: Path, script: str, seconds: int) -> str:
    """What *script* prints as root, in whose home are the contents of *folder*/files."""
    require((programs.UNSHARE,))
    (folder / "script").write_text(script, encoding="utf-8")
    own = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _INSIDE)
    return run(*own, cwd=folder, seconds=seconds)
