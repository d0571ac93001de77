"""A process that does with Nova's own code what a test asks for (``inside/program.py``)."""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.nova.databases import THREADING
from tests.servers.venvs import CHECKOUT

ANSWER_SECONDS = 120


class NovaError(Exception):
    """An error that Nova's code raised.

    ``kind`` is its class's name, ``is_no_valid_host`` says whether ``except NoValidHost`` catches
    it, ``kwargs`` are its own, as text.
    """

    def __init__(self, raised: Mapping[str, Any]) -> None:
        super().__init__(f"{raised['class']}: {raised['text']}\n{raised['traceback']}")
        self.kind: str = raised["class"]
        self.text: str = raised["text"]
        self.is_no_valid_host: bool = raised["is_no_valid_host"]
        self.kwargs: dict[str, str] = raised["kwargs"]


class NovaDriver:
    """One such process on a configuration file; its log is the file *log_path*."""

    def __init__(self, python: Path, config: Path, log_path: Path) -> None:
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "tests.nova.inside.program", "--config-file", str(config)],
                cwd=CHECKOUT,
                env={**os.environ, **THREADING},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._received = b""
        self._answer()

    def do(self, what: str, **arguments: Any) -> Any:
        """Run the function ``room.name`` below ``inside``; returns its result.

        Raises NovaError for what it raised.
        """
        line = json.dumps({"do": what, "with": arguments}) + "\n"
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        answered = json.loads(self._line())
        if "raised" in answered:
            raise NovaError(answered["raised"])
        return answered["returned"]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise AssertionError(f"no answer within {ANSWER_SECONDS} s:\n{self.log}")
                more = os.read(self._process.stdout.fileno(), 65536)
                if not more:
                    raise AssertionError(f"ended with {self._process.wait()}:\n{self.log}")
                self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
