"""The way of a warm decision, from decoded message to encoded answer, counted in modules."""

import sys

from benchmarks import workload
from benchmarks.subjects.decision import EngineDecisions
from scheduler.manager import SchedulerManager
from scheduler.rpc.context import ObjectSerializer, RequestContext, RequestContextSerializer
from scheduler.rpc.dispatcher import Dispatcher, SchedulerEndpoint
from scheduler.rpc.in_flight import CallMonitor, InFlightRequests
from tests.house.tree import ROOT

#: Those of ``filters/`` and ``weights/`` are not counted, as operators choose how many there are.
MOST_MODULES = 20
PLUG_INS = ("filters/", "weights/")


class Incoming:
    """A decoded message as the library hands it to a dispatcher."""

    client_timeout = None

    def __init__(self, arguments):
        self.message = {"method": "select_destinations", "version": "4.5", "args": arguments}
        self.ctxt = {
            **RequestContext(request_id="req-1").to_dict(),
            "arrived_at": 0.0,
            "is_redelivered": False,
        }


def test_a_warm_decision_passes_few_modules():
    decisions = EngineDecisions(workload.load("bounds").at_tiny_size().subjects["known"], None)
    decisions.warm_up()
    conf = decisions.driver.conf
    serializer = RequestContextSerializer(ObjectSerializer())
    dispatcher = Dispatcher(
        [SchedulerEndpoint(SchedulerManager(conf, decisions.driver))],
        serializer,
        in_flight=InFlightRequests(),
        monitor=CallMonitor(),
    )
    passed = set()
    folder = f"{ROOT}/scheduler/"

    def trace(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            passed.add(frame.f_code.co_filename.removeprefix(folder))

    for _number in range(3):
        spec, uuids = decisions.requests()
        incoming = Incoming(
            {
                "spec_obj": serializer.serialize_entity(None, spec),
                "instance_uuids": uuids,
                "return_objects": True,
                "return_alternates": True,
            }
        )
        passed.clear()
        sys.setprofile(trace)
        try:
            answer = dispatcher.dispatch(incoming)
        finally:
            sys.setprofile(None)
    assert answer[0][0]["nova_object.name"] == "Selection"
    # The fleet of the benchmark comes from recorded cases, not from tables.
    modules = {each for each in passed if not each.startswith((*PLUG_INS, "evaluation/"))}
    assert len(modules) <= MOST_MODULES, " ".join(sorted(modules))
