"""What a scheduler answers to well- and ill-formed messages."""

import json
import logging

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_messaging._drivers import common as driver_common

from scheduler import errors
from scheduler.rpc.context import RequestContext, RequestContextSerializer
from scheduler.rpc.dispatcher import PING, BaseAPI, Dispatcher, SchedulerEndpoint
from scheduler.rpc.in_flight import CallMonitor, InFlightRequests
from scheduler.rpc.messages import REFUSED
from scheduler.rpc.server import Server
from tests.builders import a_request
from tests.unit.rpc.fakes import RecordingDriver
from tests.unit.test_manager import a_manager

CONTEXT = RequestContext("u", "p", overwrite=False)
SPEC = RequestContextSerializer().serialize_entity(None, a_request())


LIBRARYS = ("TypeError", "NoSuchMethod")
"""Errors that are not of this project."""


class Incoming:
    """A message as a transport's driver hands it over."""

    def __init__(self, message, client_timeout=None):
        self.message = message
        self.ctxt = CONTEXT.to_dict()
        self.client_timeout = client_timeout


def a_dispatcher(endpoint=None):
    endpoints = [endpoint, BaseAPI("scheduler")]
    return Dispatcher(
        endpoints,
        RequestContextSerializer(),
        in_flight=InFlightRequests(),
        monitor=CallMonitor(),
    )


@pytest.mark.parametrize(
    ("answer", "spec", "logged", "text"),
    [
        (errors.NoValidHost(reason="not enough hosts"), SPEC, [], "not enough hosts"),
        (None, None, [logging.WARNING], "Invalid request: spec_obj"),
        (ZeroDivisionError("own words"), SPEC, [logging.ERROR], "ZeroDivisionError"),
    ],
    ids=["refusal", "mistake of the caller", "fault of ours"],
)
def test_errors_reach_the_caller_and_the_log(caplog, answer, spec, logged, text):
    driver = RecordingDriver()
    driver.answer = answer
    message = {"method": "select_destinations", "version": "4.5", "args": {"spec_obj": spec}}
    with caplog.at_level(logging.WARNING), pytest.raises(oslo_messaging.ExpectedException) as told:
        a_dispatcher(SchedulerEndpoint(a_manager(driver))).dispatch(Incoming(message))
    error = told.value.exc_info[1]
    assert text in str(error)
    assert "own words" not in str(error)
    assert {record.levelno for record in caplog.records} == set(logged)
    for record in caplog.records:
        expected = error.kwargs.get("fault_id", f"Refused select_destinations: {text}")
        assert expected in record.getMessage()
        assert (record.exc_info is not None) == (record.levelno == logging.ERROR)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({}, "method"),
        ({"method": None}, "method"),
        ({"method": 7, "args": {}}, "method"),
        ({"method": "select_destinations", "args": ["x"]}, "args"),
        ({"method": "select_destinations", "args": None}, "args"),
        ({"method": "select_destinations", "version": 4.5}, "version"),
        ({"method": "select_destinations", "version": "four"}, "version"),
        ({"method": "select_destinations", "version": "4"}, "version"),
        ({"method": "select_destinations", "namespace": {}}, "namespace"),
        (
            {"method": "ping", "namespace": "baseapi", "args": {"arg": {"nova_object.name": "X"}}},
            "X",
        ),
        ({"method": "ping", REFUSED: ["arg", "too deep"]}, "arg: too deep"),
        ({"method": "ping", "args": {}, REFUSED: {"nobody": "of ours"}}, "message"),
        ({"method": "ping", "args": {}, REFUSED: ["x" * 999]}, "x" * 200),
    ],
)
def test_malformed_messages_get_an_answer(message, field):
    with pytest.raises(oslo_messaging.rpc.dispatcher.ExpectedException) as caught:
        a_dispatcher().dispatch(Incoming(message))
    _cls, error, _traceback = caught.value.exc_info
    assert error.code == 400
    assert field in str(error) or "object" in str(error)


@pytest.mark.parametrize(
    ("message", "timeout_left"),
    [
        ({"method": "ping", "namespace": "baseapi", "args": {"arg": 1}}, 4),
        ({"method": "ping", "version": "4.5", "args": {"arg": 1}}, None),
        ({"method": "nothing", "version": "4.5"}, None),
        ({"method": "select_destinations", "version": "5.0"}, None),
    ],
)
def test_no_heartbeats_without_a_method(message, timeout_left):
    incoming = Incoming(message, client_timeout=4)
    served = timeout_left is not None

    if served:
        a_dispatcher().dispatch(incoming)
    else:
        with pytest.raises(oslo_messaging.ExpectedException) as caught:
            a_dispatcher().dispatch(incoming)
        assert isinstance(caught.value.exc_info[1], oslo_messaging.RPCDispatcherError)

    assert incoming.client_timeout == timeout_left


@pytest.mark.parametrize("enabled", [True, False])
def test_the_librarys_own_ping_is_answered_where_it_is_enabled(enabled):
    a_dispatcher()  # the library registers the option
    cfg.CONF.set_override("rpc_ping_enabled", enabled)
    try:
        dispatcher = a_dispatcher()
    finally:
        cfg.CONF.clear_override("rpc_ping_enabled")
    message = Incoming({"method": PING, "version": "1.0", "args": {}})
    if enabled:
        assert dispatcher.dispatch(message) == "pong"
    else:
        with pytest.raises(oslo_messaging.ExpectedException):
            dispatcher.dispatch(message)


class FaultyManager:
    """Has a fault of its own in one method, and no argument but those named in the other."""

    @oslo_messaging.expose
    def select_destinations(self, context):
        raise errors.InvalidRequest(field="f", reason="r") from ValueError("cause")

    @oslo_messaging.expose
    def delete_aggregate(self, context, aggregate):
        {}["surprise"]

    @oslo_messaging.expose
    def update_aggregates(self, context, aggregates):
        self.update_aggregates(context, aggregates)


def told(method, **arguments):
    """What travels to the caller."""
    message = {"method": method, "args": arguments}
    with pytest.raises(oslo_messaging.ExpectedException) as caught:
        a_dispatcher(FaultyManager()).dispatch(Incoming(message))
    failure = json.loads(driver_common.serialize_remote_exception(caught.value.exc_info))
    return failure


@pytest.mark.parametrize(
    ("method", "arguments", "name", "text"),
    [
        ("select_destinations", {}, "InvalidRequest", "f: r"),
        ("select_destinations", {"bogus": 1}, "TypeError", "'bogus'"),
        ("select_destinations", {"self": 1}, "TypeError", "'self'"),
        ("select_destinations", {"context": 1}, "TypeError", "'context'"),
        ("delete_aggregate", {"aggregate": 1, "more": 2}, "TypeError", "'more'"),
        ("delete_aggregate", {"aggregate": 1}, "NovaException", "Internal fault"),
        ("update_aggregates", {"aggregates": 1}, "NovaException", "(RecursionError)"),
        ("no_such_method", {}, "NoSuchMethod", "no_such_method"),
    ],
)
def test_no_traceback_reaches_the_caller(method, arguments, name, text):
    failure = told(method, **arguments)
    assert failure["class"] == name
    assert name in LIBRARYS or failure["module"] == errors.WIRE_MODULE
    assert text in failure["message"]
    assert len(failure["tb"]) == 1
    assert "cause" not in failure["tb"][0]


def test_context_of_the_message_is_current_in_the_method():
    seen = []

    class Manager(FaultyManager):
        @oslo_messaging.expose
        def select_destinations(self, context):
            seen.append((context, oslo_context.get_current()))

    message = {"method": "select_destinations", "args": {}}
    a_dispatcher(Manager()).dispatch(Incoming(message))
    ((given, current),) = seen
    assert given is current
    assert given.request_id == CONTEXT.request_id


def test_an_error_around_the_dispatcher_reaches_the_caller_and_the_log(transport, caplog):
    server, incoming, replies = Server(transport, "scheduler", "here", []), Incoming({}), []
    incoming.message = None  # the library itself stumbles
    incoming.reply = lambda failure: replies.append(failure[0])
    server._process_incoming([incoming])
    assert replies == [AttributeError]
    assert "A request could not be handed to the dispatcher" in caplog.text


def test_a_server_whose_queue_ends_meanwhile_subscribes_once_more(transport, monkeypatch):
    listen, problems = transport._driver.listen, [oslo_messaging.MessageDeliveryFailure("no queue")]

    def failing_once(*arguments):
        if problems:
            raise problems.pop()
        return listen(*arguments)

    monkeypatch.setattr(transport._driver, "listen", failing_once)
    monkeypatch.setattr("scheduler.rpc.server.AGAIN_SECONDS", 0)
    server = Server(transport, "scheduler", "here", [])
    server.start()
    assert server.is_listening
    server.stop()
    server.wait()
