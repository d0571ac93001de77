"""A small disk of its own, to be full."""

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Self

_CHUNK_BYTES = 4096


class SmallDisk:
    """A tmpfs of *size_kib* at *folder*; mounting one needs root."""

    def __init__(self, folder: Path, size_kib: int) -> None:
        self.folder = folder
        self._size_kib = size_kib
        self._ballast = folder / "ballast"

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        options = f"size={self._size_kib}k"
        _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder))
        return self

    def __exit__(self, *_error: object) -> None:
        # Whoever ends just now may still have a file open there.
        _run("umount", "--lazy", str(self.folder))

    def fill(self, but_kib: int = 0) -> None:
        """Leave no byte, or only so much."""
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(_CHUNK_BYTES)):
                pass
        if but_kib:
            os.truncate(self._ballast, self._ballast.stat().st_size - but_kib * 1024)

    def empty(self) -> None:
        self._ballast.unlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
