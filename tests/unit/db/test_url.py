import ssl
from types import SimpleNamespace

import pytest
from sqlalchemy.engine import make_url

from scheduler import errors
from scheduler.db import url as db_url
from scheduler.db.database import Database

OPTION = "[database] connection"
BASE = "mysql+pymysql://nova:s%40cret@db.example:3306/nova_cell0?charset=utf8#f"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not a url", "not a URL of the form"),
        ("", "not a URL of the form"),
        ("mysql+pymysql://u:hidden@h:port/nova", "not a URL of the form"),
        ("nosuch://u:hidden@h/nova", "'nosuch' is not one of the databases sqlite, mysql, postg"),
        ("oracle://u:hidden@h/nova", "'oracle' is not one of"),
        ("mysql+nosuch://u:hidden@h/nova", "no driver of the name 'mysql+nosuch'"),
        ("mysql+mysqldb://u:hidden@h/nova", "the driver of 'mysql.mysqldb' is not installed: "),
        ("mysql+aiomysql://u:hidden@h/nova", "aiomysql"),
        ("postgresql+psycopg_async://u:hidden@h/nova", "a driver for asyncio"),
    ],
)
def test_unusable(text, reason):
    with pytest.raises(errors.ConfigurationError) as caught:
        Database(text)
    message = str(caught.value)
    assert message.startswith("Invalid configuration: [database] connection: ")
    assert "hidden" not in message
    assert "\n" not in message
    with pytest.raises(errors.ConfigurationError, match=reason.replace("+", r"\+")):
        db_url.parse(text)


MARIADB = "mysql+pymysql://u:secret@h/nova?charset="


@pytest.mark.parametrize(
    ("text", "dialect", "rendered"),
    [
        ("sqlite:////tmp/x.sqlite", "sqlite", None),
        ("mysql+pymysql://u:secret@h/nova", "mysql", f"{MARIADB}utf8mb4"),
        (f"{MARIADB}utf8", "mysql", None),
        ("mariadb+pymysql://u:secret@h/nova", "mysql", f"{MARIADB}utf8mb4"),
        ("postgresql+psycopg://u:p%40ss@h/nova", "postgresql", None),
    ],
)
def test_usable(text, dialect, rendered):
    database = Database(text)
    assert database.dialect_name == dialect
    assert database.url.render_as_string(hide_password=False) == (rendered or text)


def test_connection_parameters_are_added():
    settings = {"connection_parameters": "charset=utf8&ssl_ca=/ca.pem"}
    database = Database("mysql+pymysql://u@h/nova", settings=settings)
    assert dict(database.url.query) == {"charset": "utf8", "ssl_ca": "/ca.pem"}


@pytest.mark.parametrize(
    "text",
    [
        "mysql+pymysql://u:secret@h/nova",
        "postgresql+psycopg://u@h/nova?password=secret",
        "postgresql+psycopg://u:secret@h/nova?sslmode=require",
    ],
)
def test_masked(text):
    database = Database(text)
    assert "secret" not in database.masked_url
    assert "***" in database.masked_url
    assert "@h/nova" in database.masked_url


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("sqlite:///plain", None, "sqlite:///plain"),
        (
            "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell1?{query}",
            BASE,
            "mysql+pymysql://nova:s%40cret@db.example:3306/nova_cell1?charset=utf8",
        ),
        ("{path}-{fragment}", BASE, "nova_cell0-f"),
        ("{scheme}:////{path}x", "sqlite:////tmp/n.sqlite", "sqlite:////tmp/n.sqlitex"),
        ("x://{hostname}:{port}/y", "mysql://u@h/n", "x://h:None/y"),
        ("x://u:a{{b}}@h/{path}", BASE, "x://u:a{b}@h/nova_cell0"),
        # These stay as they are, with one line in the log.
        ("x://{hostname}/y", None, "is a template, but [database] connection is not set"),
        ("x://u:a{b@h/y", BASE, "is a template that cannot be filled"),
        ("x://{nosuch}/y", BASE, "is a template that cannot be filled"),
        ("x://{0}/y", BASE, "is a template that cannot be filled"),
    ],
)
def test_template(text, base, expected, caplog):
    filled = db_url.fill_template(text, base, "database_connection", OPTION)
    if expected.startswith("is a template"):
        (message,) = caplog.messages
        assert message.startswith(f"Cell mapping database_connection {expected}")
        assert ("s%40cret" in caplog.text, "Traceback" in caplog.text) == (False, False)
        expected = text
    assert filled == expected


# --- TLS parameters of URLs -> parameters of the drivers, or refusals

MYSQL, POSTGRESQL = "mysql+pymysql://u@h/nova?", "postgresql+psycopg://u@h/nova?"
BUNDLE, UNNAMED = "/system.pem", {"ssl_check_hostname": "false"}


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = SimpleNamespace(cafile=BUNDLE, capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)


#: Parameters that leave something unverified, which is told.
WEAK = (("ssl_check_hostname", "false"), ("sslmode", "require"), ("sslmode", "verify-ca"))


@pytest.mark.parametrize(
    ("text", "query", "requires"),
    [
        (MYSQL, {}, False),
        (MYSQL + "charset=utf8", {"charset": "utf8"}, False),
        (MYSQL + "ssl_capath=a", {"ssl_capath": "a"}, True),
        (MYSQL + "ssl_ca=a&ssl_cert=c", {"ssl_ca": "a", "ssl_cert": "c"}, True),
        (MYSQL + "ssl_cert=c", {"ssl_cert": "c", "ssl_ca": BUNDLE}, True),
        (MYSQL + "ssl_verify_cert=true", {"ssl_ca": BUNDLE}, True),
        (MYSQL + "ssl_verify_identity=1", {"ssl_ca": BUNDLE}, True),
        (MYSQL + "ssl=true", {"ssl_ca": BUNDLE}, True),
        (MYSQL + "ssl=false", {}, False),
        (MYSQL + "ssl_ca=a&ssl_verify_cert=true&ssl_verify_identity=true", {"ssl_ca": "a"}, True),
        (MYSQL + "ssl_ca=a&ssl_check_hostname=true", {"ssl_ca": "a"}, True),
        (MYSQL + "ssl_ca=a&ssl_check_hostname=false", {"ssl_ca": "a", **UNNAMED}, True),
        (MYSQL + "ssl_ca=a&ssl_verify_identity=0", {"ssl_ca": "a", **UNNAMED}, True),
        (MYSQL + "ssl_disabled=true", {"ssl_disabled": "true"}, False),
        (MYSQL + "ssl_disabled=false&ssl_ca=a", {"ssl_ca": "a"}, True),
        (POSTGRESQL, {}, False),
        (POSTGRESQL + "sslrootcert=a", {"sslrootcert": "a", "sslmode": "verify-full"}, True),
        (POSTGRESQL + "sslcert=a", {"sslcert": "a", "sslmode": "verify-full"}, True),
        (POSTGRESQL + "sslcert=a&sslmode=require", {"sslcert": "a", "sslmode": "require"}, True),
        (POSTGRESQL + "sslmode=disable", {"sslmode": "disable"}, False),
        (POSTGRESQL + "sslmode=verify-ca", {"sslmode": "verify-ca"}, True),
        ("sqlite://", {}, False),
    ],
)
def test_tls_that_is_asked_for_verifies(text: str, query: dict[str, str], requires: bool) -> None:
    url = db_url.with_verified_tls(make_url(text), OPTION)
    assert (dict(url.query), db_url.requires_tls(url)) == (query, requires)
    weak = [f"{name} = {value}" for name, value in query.items() if (name, value) in WEAK]
    told = db_url.tls_weakness(url)
    assert ([] if told is None else [told.partition(" does ")[0]]) == weak


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
