"""Versions the client sends, what it makes of caps and of errors."""

import oslo_messaging
import pytest

from conductor_stub.rpcapi import SchedulerAPI, ping
from scheduler import errors
from scheduler.rpc.client import translated_errors, version_cap
from scheduler.rpc.context import RequestContext
from tests.builders import OWN_UUID, a_request

CONTEXT = RequestContext("u", "p", overwrite=False)


def an_api(transport, conf, interface, cap):
    conf.set_override(interface, cap, group="upgrade_levels")
    return SchedulerAPI(transport, conf)


@pytest.mark.parametrize(
    ("interface", "caps"),
    [
        ("scheduler", ["auto", "queens", "4", "4.x", "newest"]),
        ("baseapi", ["auto", "newton", "1", "1.x"]),
    ],
)
def test_a_cap_that_is_none_is_refused_at_once(transport, conf, interface, caps):
    for cap in caps:
        with pytest.raises(errors.ConfigurationError, match=rf"\[upgrade_levels\] {interface}"):
            an_api(transport, conf, interface, cap)


@pytest.mark.parametrize("interface", ["scheduler", "baseapi"])
def test_an_empty_option_caps_nothing(conf, interface):
    conf.set_override(interface, "", group="upgrade_levels")
    assert version_cap(conf, interface) is None


@pytest.mark.parametrize(("objects_", "alternates"), [(True, False), (False, True), (True, True)])
def test_selections_need_4_5(transport, conf, objects_, alternates):
    api = an_api(transport, conf, "scheduler", "pike")
    with pytest.raises(errors.SelectionObjectsWithOldRPCVersionNotSupported, match=r"4\.4"):
        api.select_destinations(CONTEXT, a_request(), [OWN_UUID], objects_, alternates)


@pytest.mark.parametrize(
    ("cap", "method", "arguments"),
    [
        ("4.0", "fanout", ("update_aggregates",)),
        ("4.1", "fanout", ("sync_instance_info",)),
        ("juno", "select_destinations", (a_request(), None)),
    ],
)
def test_what_the_cap_forbids_is_not_sent(transport, conf, cap, method, arguments):
    with pytest.raises(oslo_messaging.RPCVersionCapError):
        getattr(an_api(transport, conf, "scheduler", cap), method)(CONTEXT, *arguments)


def test_a_ping_that_the_cap_forbids_is_not_sent(transport, conf):
    conf.set_override("baseapi", "2.0", group="upgrade_levels")
    with pytest.raises(oslo_messaging.RPCVersionCapError):
        ping(transport, "scheduler", 1.0, 0)


@pytest.mark.parametrize(
    ("cls", "kwargs"),
    [
        (errors.NoValidHost, {"reason": "There are not enough hosts available."}),
        (errors.NoValidHost, {"reason": ""}),
        (errors.MaxRetriesExceeded, {"reason": "3 (of 3)"}),
        (errors.InvalidRequest, {"field": "spec_obj", "reason": "odd: it is\nnull"}),
        (errors.SchedulerHostFilterNotFound, {"filter_name": "X, Y"}),
        (errors.NovaException, {}),
    ],
)
def test_remote_errors_come_back_as_they_were(cls, kwargs):
    original = cls(**kwargs)

    with pytest.raises(cls) as caught, translated_errors():
        raise oslo_messaging.RemoteError(cls.__name__, str(original), ["traceback"])

    assert type(caught.value) is cls
    assert str(caught.value) == str(original)


@pytest.mark.parametrize("name", ["ValueError", "annotations", "WIRE_MODULE", None])
def test_foreign_errors_stay_what_they_are(name):
    with pytest.raises(oslo_messaging.RemoteError), translated_errors():
        raise oslo_messaging.RemoteError(name, "text", [])
    with pytest.raises(errors.NoValidHost, match="^Scheduling failed$"), translated_errors():
        raise oslo_messaging.RemoteError("NoValidHost", "Scheduling failed", [])
