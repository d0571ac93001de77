"""A folder that the processes of one daemon share, and that goes with them.

A daemon that is killed leaves its folder behind; the next one to start finds it and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import stat
import tempfile
from typing import Final

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

PREFIX: Final = "nova-scheduler-"
_UNFINISHED: Final = ".new-"
_OWN_NAME: Final = re.compile(rf"{PREFIX}\d+-[a-z0-9_]{{8}}")


class PrivateFolder:
    """Made by a master, and locked by it and its forks for as long as one of them lives."""

    def __init__(self, parent: pathlib.Path | None = None) -> None:
        parent = parent or pathlib.Path(tempfile.gettempdir())
        remove_leftovers(parent)
        made = pathlib.Path(tempfile.mkdtemp(prefix=f"{_UNFINISHED}{PREFIX}", dir=parent))
        self._lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        # Under its name it is locked from the first moment on.
        self.path = parent / f"{PREFIX}{os.getpid()}-{made.name.rpartition('-')[2]}"
        made.rename(self.path)

    def close(self) -> None:
        """Remove it; called when all who use it have ended."""
        shutil.rmtree(self.path)
        os.close(self._lock)


def remove_leftovers(parent: pathlib.Path) -> None:
    """Remove the folders of daemons of this account of which no process is left."""
    for path in parent.glob(f"{PREFIX}*"):
        if not _OWN_NAME.fullmatch(path.name):
            continue  # somebody else's, whose name begins likewise
        with contextlib.suppress(OSError):  # another daemon removes it as well, or uses it
            _remove_if_left(path)


def _remove_if_left(path: pathlib.Path) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
        LOG.info("Removed %s, which a daemon that was killed had left", path)
    finally:
        os.close(lock)
