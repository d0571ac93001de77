"""TLS parameters of URLs -> parameters of the drivers, or refusals."""

from __future__ import annotations

import ssl
from types import SimpleNamespace

import pytest
from sqlalchemy.engine import make_url

from scheduler import errors
from scheduler.db import url as db_url

MYSQL, POSTGRESQL = "mysql+pymysql://u@h/nova?", "postgresql+psycopg://u@h/nova?"
OPTION = "[database] connection"
BUNDLE = "/system.pem"


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = SimpleNamespace(cafile=BUNDLE, capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", {}),
        ("charset=utf8", {"charset": "utf8"}),
        ("ssl_ca=a", {"ssl_ca": "a"}),
        ("ssl_capath=a", {"ssl_capath": "a"}),
        ("ssl_ca=a&ssl_cert=c&ssl_key=k", {"ssl_ca": "a", "ssl_cert": "c", "ssl_key": "k"}),
        ("ssl_cert=c&ssl_key=k", {"ssl_cert": "c", "ssl_key": "k", "ssl_ca": BUNDLE}),
        ("ssl_verify_cert=true", {"ssl_ca": BUNDLE}),
        ("ssl_verify_identity=1", {"ssl_ca": BUNDLE}),
        ("ssl=true", {"ssl_ca": BUNDLE}),
        ("ssl=false", {}),
        ("ssl_ca=a&ssl_verify_cert=true&ssl_verify_identity=true", {"ssl_ca": "a"}),
        ("ssl_ca=a&ssl_check_hostname=true", {"ssl_ca": "a"}),
        ("ssl_ca=a&ssl_check_hostname=false", {"ssl_ca": "a", "ssl_check_hostname": "false"}),
        ("ssl_ca=a&ssl_verify_identity=0", {"ssl_ca": "a", "ssl_check_hostname": "false"}),
        ("ssl_disabled=true", {"ssl_disabled": "true"}),
        ("ssl_disabled=false&ssl_ca=a", {"ssl_ca": "a"}),
    ],
)
def test_mysql(text: str, query: dict[str, str]) -> None:
    url = db_url.with_verified_tls(make_url(MYSQL + text), OPTION)
    assert dict(url.query) == query
    assert db_url.requires_tls(url) is any(name in query for name in ("ssl_ca", "ssl_capath"))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", {}),
        ("sslrootcert=a", {"sslrootcert": "a", "sslmode": "verify-full"}),
        ("sslcert=a", {"sslcert": "a", "sslmode": "verify-full"}),
        ("sslrootcert=a&sslmode=require", {"sslrootcert": "a", "sslmode": "require"}),
        ("sslmode=disable", {"sslmode": "disable"}),
    ],
)
def test_postgresql(text: str, query: dict[str, str]) -> None:
    url = db_url.with_verified_tls(make_url(POSTGRESQL + text), OPTION)
    assert dict(url.query) == query
    assert db_url.requires_tls(url) is (query.get("sslmode", "disable") != "disable")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ssl_ca=a&ssl_verify_cert=false", "ssl_verify_cert = false"),
        ("ssl_ca=a&ssl_check_hostname=maybe", "ssl_check_hostname = maybe: neither true nor"),
        ("ssl_disabled=true&ssl_ca=a", "ssl_disabled = true, and yet"),
    ],
)
def test_what_cannot_be_meant(text: str, reason: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=reason) as caught:
        db_url.with_verified_tls(make_url(MYSQL + text), OPTION)
    assert OPTION in str(caught.value)


def test_a_system_without_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = SimpleNamespace(cafile=None, capath="/folder")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    asked = make_url(MYSQL + "ssl=true")
    assert dict(db_url.with_verified_tls(asked, OPTION).query) == {"ssl_capath": "/folder"}
    paths.capath = None
    with pytest.raises(errors.ConfigurationError, match="ssl_ca"):
        db_url.with_verified_tls(asked, OPTION)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (MYSQL + "ssl_ca=a", None),
        (MYSQL + "ssl_ca=a&ssl_check_hostname=no", "ssl_check_hostname"),
        (POSTGRESQL, None),
        (POSTGRESQL + "sslrootcert=a", None),
        (POSTGRESQL + "sslmode=disable", None),
        (POSTGRESQL + "sslmode=require", "sslmode = require"),
        (POSTGRESQL + "sslrootcert=a&sslmode=verify-ca", "sslmode = verify-ca"),
        ("sqlite://", None),
    ],
)
def test_what_is_left_unverified(text: str, told: str | None) -> None:
    found = db_url.tls_weakness(db_url.with_verified_tls(make_url(text), OPTION))
    assert (found is None) if told is None else told in str(found)
