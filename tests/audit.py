"""``make audit``: known weaknesses of the exact versions in constraints.txt, by pip-audit.

The data are fetched from OSV.  Where they cannot be reached nothing is known, which is said
aloud and is no failure; a weakness that is found is one.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
PATIENCE_SECONDS = 180

#: By the id of a weakness: why it does not concern this project.
ACCEPTED: Mapping[str, str] = {}


def asked(report: Path) -> str:
    """Have pip-audit write its *report*; returns what it says besides."""
    command = [
        *(sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS)),
        *("--no-deps", "--disable-pip", "--vulnerability-service", "osv", "--timeout", "10"),
        *("--progress-spinner", "off", "--format", "json", "--output", str(report)),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE_SECONDS} s"
    return done.stderr


def found_in(report: Mapping[str, Any]) -> list[str]:
    """A line for each weakness that is not accepted."""
    return [
        f"{package['name']} {package['version']}: {weakness['id']}, mended in "
        f"{', '.join(weakness['fix_versions']) or 'no version yet'}"
        for package in report["dependencies"]
        for weakness in package.get("vulns", ())
        if weakness["id"] not in ACCEPTED
    ]


def main(ask: Callable[[Path], str] = asked) -> int:
    """Ask, and say what came of it; 1 if there is a weakness."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        said = ask(path)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    if not text:
        reason = (said.strip().splitlines() or ["it said nothing"])[-1]
        print(f"==> NOT AUDITED: the data on weaknesses cannot be had: {reason[:300]}")  # noqa: T201
        return 0
    report = json.loads(text)
    lines = found_in(report)
    for line in lines:
        print(line)  # noqa: T201
    count = len(report["dependencies"])
    print(f"==> Audited {count} packages: {len(lines)} weaknesses")  # noqa: T201
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
