"""Names and versions of the libraries -> whether the fast path is possible."""

import logging

import pytest

from scheduler.rpc.fastpath import install


@pytest.fixture(autouse=True)
def _forgotten():
    install.is_possible.cache_clear()
    yield
    install.is_possible.cache_clear()


def test_the_installed_versions_have_all():
    assert install.missing() == []


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ("no.such.module:Part name", ["no.such.module:Part is not there"]),
        ("collections:NoSuchClass", ["collections:NoSuchClass is not there"]),
        ("queue:Queue put\n    mutex no_such_name", ["queue:Queue.no_such_name is not there"]),
        ("os.path:join", []),
    ],
)
def test_what_is_missing_is_named(parts, found):
    assert install.missing(parts=parts) == found


@pytest.mark.parametrize(
    ("version", "is_tested"),
    [("5.0.1", True), ("5.4.99", True), ("18.3.0rc1", False), ("99.0", False)],
)
def test_versions_above_the_tested_are_not_used(version, is_tested):
    found = install.missing(lambda _name: version, parts="os:path")
    assert (not any("amqp" in each for each in found)) == is_tested


def test_one_log_line_says_why(caplog, monkeypatch):
    monkeypatch.setattr(install, "missing", lambda: ["amqp:This is not there", "that is not there"])
    assert not install.is_possible()
    assert not install.is_possible()
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "off: amqp:This is not there; that is not there" in record.getMessage()
