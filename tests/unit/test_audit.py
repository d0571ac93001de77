"""(what pip-audit wrote) -> what is said, and whether it stops CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import audit

CLEAN = {"name": "fine", "version": "1.0", "vulns": []}
WEAK = {
    "name": "weak",
    "version": "2.0",
    "vulns": [{"id": "GHSA-1", "fix_versions": ["2.1"]}, {"id": "GHSA-2", "fix_versions": []}],
}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([CLEAN], 0, "Audited 1 packages: 0 weaknesses"),
        ([CLEAN, WEAK], 1, "weak 2.0: GHSA-1, mended in 2.1"),
        ([WEAK], 1, "weak 2.0: GHSA-2, mended in no version yet"),
        (None, 0, "NOT AUDITED: the data on weaknesses cannot be had: ConnectionError"),
    ],
)
def test_what_is_said(
    capsys: pytest.CaptureFixture[str],
    packages: list[dict[str, object]] | None,
    status: int,
    said: str,
) -> None:
    def ask(report: Path) -> str:
        if packages is None:
            return "Traceback\nConnectionError"
        report.write_text(json.dumps({"dependencies": packages}), encoding="utf-8")
        return ""

    assert audit.main(ask) == status
    assert said in capsys.readouterr().out


def test_an_accepted_weakness_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-1": "not used", "GHSA-2": "not used"})
    assert audit.found_in({"dependencies": [WEAK]}) == []
