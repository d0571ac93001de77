"""A headless Chromium that tests drive over its DevTools protocol, on a pair of pipes.

The protocol is JSON messages with a zero byte after each; no driver program and no library
stand between.  One page at a time.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

from tests.servers import programs
from tests.waiting import wait_until

PROGRAMS = (programs.CHROMIUM,)
ANSWER_SECONDS = 60
END_SECONDS = 10
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--password-store=basic",
)


class PageError(AssertionError):
    """The browser refused a command, or a script in the page failed."""


class Chromium:
    """One browser with one page.  Use it as a context manager."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nst-chromium-"))
        #: What scripts and the browser complained of on the page, since it was opened.
        self.complaints: list[str] = []
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._number = 0
        self._session: str | None = None
        self._loaded = threading.Event()

    def __enter__(self) -> Self:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        path = programs.find(programs.CHROMIUM)
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
        command = [str(path), *_OPTIONS, *sandbox, f"--user-data-dir={self.folder}"]
        # The browser reads commands from 3 and writes answers to 4.
        join = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        with (self.folder / "chromium.log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", join, "bash", *command],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "HOME": str(self.folder)},
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._out = os.fdopen(ours_out, "wb")
        self._in = os.fdopen(ours_in, "rb")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):
            self._out.close()  # which ends the browser
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        self._in.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- the page ------------------------------------------------------------------------

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the window, in CSS pixels, and what the user prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Go to *url* and wait until it is loaded."""
        self._loaded.clear()
        self.complaints.clear()
        answer = self.send("Page.navigate", url=url)
        if "errorText" in answer:
            raise PageError(f"{url}: {answer['errorText']}")
        if not self._loaded.wait(ANSWER_SECONDS):
            raise PageError(f"{url} was not loaded in time")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; promises are waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise PageError(f"{script}: {_text_of(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def wait(self, script: str, timeout_seconds: float = 60.0) -> None:
        wait_until(
            lambda: self.run(f"Boolean({script})"),
            timeout_seconds,
            lambda: f"{script}; {self.complaints}",
        )

    def point(self, x: float, y: float) -> None:
        """Move the mouse to a place in the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str, code: int) -> None:
        """Press and release a key that types nothing; *code* is its Windows key code."""
        for kind in ("rawKeyDown", "keyUp"):
            pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type=kind, **pressed)

    # --- the protocol --------------------------------------------------------------------

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command to the page and return its result."""
        return self._send(method, self._session, **parameters)

    def _send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._answers[number] = queue.Queue(1)
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        try:
            answer = self._answers[number].get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            log = (self.folder / "chromium.log").read_text(encoding="utf-8", errors="replace")
            raise PageError(f"{method} was not answered in time\n{log}") from None
        finally:
            del self._answers[number]
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._in.fileno(), 1 << 20):
            *messages, rest = (rest + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            waiting = self._answers.get(message["id"])
            if waiting is not None:
                waiting.put(message)
        elif message["method"] == "Page.loadEventFired":
            self._loaded.set()
        elif message["method"] == "Runtime.exceptionThrown":
            self.complaints.append(_text_of(message["params"]["exceptionDetails"]))
        elif message["method"] == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] in ("error", "warning"):
                self.complaints.append(f"{entry['source']}: {entry['text']} {entry.get('url')}")


def _text_of(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])
