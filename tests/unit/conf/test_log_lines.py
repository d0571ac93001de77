"""Lines made the short way are those that the library makes."""

from __future__ import annotations

import logging
import sys

import pytest
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import formatters
from oslo_log import log as oslo_log

from scheduler.conf import defaults, log_lines
from scheduler.rpc.context import RequestContext

IDENTITY = "%(user)s %(project)s %(domain)s %(nonsense)s"


@pytest.fixture
def conf():
    conf = cfg.ConfigOpts()
    oslo_log.register_options(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("logging_context_format_string", defaults.CONTEXT_FORMAT)
    conf.set_override("logging_user_identity_format", defaults.USER_IDENTITY_FORMAT)
    return conf


@pytest.fixture
def context():
    yield RequestContext(user_id="u", project_id="p", request_id="req-1", roles=["member"])
    oslo_context._request_store.__dict__.clear()


def a_record(level=logging.INFO, message="%d hosts of %s", arguments=(3, "é"), **more):
    record = logging.LogRecord("scheduler.x", level, "x.py", 7, message, arguments, None)
    record.created, record.msecs = 1_780_000_000.123456, 123.456
    record.__dict__.update({"extra_keys": ["project", "version"], "project": "x", **more})
    return record


def raised():
    try:
        raise LookupError("gone")
    except LookupError:
        return sys.exc_info()


def both(conf, **record):
    """The library's line and ours."""
    given = {"config": conf, "project": "nova", "version": "1", "datefmt": conf.log_date_format}
    kinds = (formatters.ContextFormatter, log_lines.LineFormatter)
    return [kind(**given).format(a_record(**record)) for kind in kinds]


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"arguments": (), "message": "100 %"},
        {"level": logging.DEBUG},
        {"level": logging.WARNING},
        {"exc_info": raised()},
        {"instance_uuid": "i-1", "extra_keys": ["instance_uuid"]},
        {"instance": {"uuid": "i-1"}},
        {"resource": "[r] ", "extra_keys": ["resource"]},
        {"request_id": "req-of-record"},
    ],
    ids=lambda record: "-".join(record) or "plain",
)
def test_a_line_is_that_of_the_library(conf, context, record):
    expected, found = both(conf, **record)
    assert found == expected
    assert context.request_id in found or "request_id" in record


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("logging_context_format_string", "%(message)s %(user_identity)s"),
        ("logging_context_format_string", "%(isotime)s %(project)s %(version)s %(message)s"),
        ("logging_context_format_string", "%(error_summary)s|%(roles)s|%(message)s"),
        (
            "logging_context_format_string",
            "%(resource)s%(color)s%(user_name)s%(tenant)s%(funcName)s",
        ),
        ("logging_user_identity_format", IDENTITY),
    ],
)
def test_whatever_the_formats_say(conf, context, name, text):
    del context
    conf.set_override(name, text)
    expected, found = both(conf)
    assert found == expected


@pytest.mark.parametrize(
    "attributes", [{"resource_uuid": "r-1"}, {"instance_uuid": "i-1"}, {"request_id": ""}], ids=str
)
def test_whatever_the_context_says(conf, context, attributes):
    context.__dict__.update(attributes)
    expected, found = both(conf)
    assert found == expected


def test_without_a_context(conf):
    expected, found = both(conf)
    assert found == expected


def test_the_usual_line_does_not_go_the_librarys_way(conf, context, monkeypatch):
    del context
    monkeypatch.setattr(formatters.ContextFormatter, "format", lambda *_given: "the library's")
    assert both(conf)[1].endswith("3 hosts of é")


@pytest.fixture
def root(monkeypatch):
    """The root logger without the handlers of others."""
    for name in ("logThreads", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, True)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    return root


def a_handler(formatter):
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    return handler


def test_only_what_the_library_has_set_up_is_replaced(conf, root):
    own = a_handler(formatters.ContextFormatter(config=conf, datefmt="%H", project="nova"))
    others = a_handler(logging.Formatter("%(message)s"))
    root.handlers = [own, others]
    log_lines.install()
    assert type(own.formatter) is log_lines.LineFormatter
    assert (own.formatter.datefmt, own.formatter.project) == ("%H", "nova")
    assert type(others.formatter) is logging.Formatter


def test_a_handler_that_writes_no_lines_may_show_the_thread(conf, root):
    journal = logging.Handler()
    journal.setFormatter(formatters.ContextFormatter(config=conf))
    root.handlers = [journal]
    log_lines.install()
    assert logging.logThreads
    # Its fields are what the library's formatter has put into the record.
    assert type(journal.formatter) is formatters.ContextFormatter


@pytest.mark.parametrize(
    ("option", "text", "other", "is_looked_up"),
    [
        ("logging_default_format_string", "%(message)s", None, False),
        ("logging_default_format_string", "%(threadName)s %(message)s", None, True),
        ("logging_debug_format_suffix", "%(thread)d", None, True),
        ("logging_context_format_string", "%(processName)s", None, True),
        ("logging_default_format_string", "%(message)s", logging.Formatter(), True),
        ("logging_default_format_string", "%(message)s", formatters.JSONFormatter(), True),
    ],
)
def test_the_thread_is_looked_up_where_a_line_may_show_it(
    conf, root, option, text, other, is_looked_up
):
    conf.set_override(option, text)
    kinds = [formatters.ContextFormatter(config=conf), *([other] if other else [])]
    root.handlers = [a_handler(each) for each in kinds]
    log_lines.install()
    assert (logging.logThreads, logging.logMultiprocessing) == (is_looked_up, is_looked_up)
