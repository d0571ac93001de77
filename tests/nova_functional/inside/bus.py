"""Nova's in-process bus made honest: what goes to or from our scheduler travels as JSON.

Failures take the library's form of remote exceptions, so that Nova's conductor rebuilds its own.
"""

import json
import threading
from typing import Any

import nova.conf
import nova.rpc
from nova.tests.fixtures import notifications
from oslo_messaging._drivers import common, impl_fake
from oslo_messaging.notify import _impl_test
from oslo_serialization import jsonutils

TOPIC = "scheduler"
_IN_PROCESS_ONLY = frozenset(("db_connection", "mq_connection"))


def install(counted: Any) -> None:
    """Replace what carries messages; *counted* is called with the name of each request."""
    polled = threading.local()
    exchange, incoming = impl_fake.FakeExchange, impl_fake.FakeIncomingMessage
    deliver, poll = exchange.deliver_message, exchange.poll
    begin, answer = incoming.__init__, incoming.reply

    def deliver_message(self, topic, ctxt, message, *args, **kwargs):
        if topic == TOPIC:
            kept = {key: value for key, value in ctxt.items() if key not in _IN_PROCESS_ONLY}
            ctxt, message = travelled(kept), travelled(message)
            counted(message.get("method"))
        return deliver(self, topic, ctxt, message, *args, **kwargs)

    def poll_one(self, target, pool):
        found = poll(self, target, pool)
        polled.topic = target.topic
        return found

    def initialize(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        self.is_for_scheduler = getattr(polled, "topic", None) == TOPIC

    def reply(self, reply=None, failure=None):
        if not self.is_for_scheduler:
            return answer(self, reply, failure)
        if not failure:
            return answer(self, travelled(reply), None)
        if self._reply_q:
            self._reply_q.put((None, rebuilt(failure)))
        return None

    exchange.deliver_message, exchange.poll = deliver_message, poll_one
    incoming.__init__, incoming.reply = initialize, reply
    impl_fake.FakeExchangeManager.cleanup = classmethod(lambda cls: None)  # others are on it, too
    _impl_test.TestDriver.notify = notify


def travelled(message: Any) -> Any:
    """*message* as it arrives on the other side of a real bus."""
    return json.loads(jsonutils.dumps(message))


def rebuilt(failure: Any) -> BaseException:
    """The exception that a caller gets.

    On a real bus its class has ``_Remote`` in its name, which tests do not expect.
    """
    text = common.serialize_remote_exception(failure)
    error = common.deserialize_remote_exception(text, nova.rpc.get_allowed_exmods())
    if type(error).__name__.endswith("_Remote"):
        error.__class__ = type(error).__mro__[1]
    return error


def notify(self: Any, ctxt: Any, message: Any, priority: Any, retry: Any) -> None:
    """Hand our notifications to the fixtures that collect those of Nova."""
    _impl_test.NOTIFICATIONS.append((ctxt, message, priority, retry))
    publisher = message["publisher_id"]
    if TOPIC not in publisher:
        return
    message = travelled(message)
    event_type, payload = message["event_type"], message["payload"]
    if ":" in publisher:
        target = nova.rpc.NOTIFIER
        # Tests start the service under a name that is not the configured one.
        publisher = f"{publisher.partition(':')[0]}:{nova.conf.CONF.host}"
        if isinstance(target, notifications.FakeVersionedNotifier):
            sent = {"publisher_id": publisher, "priority": message["priority"]}
            sent |= {"event_type": event_type, "payload": payload}
            target.versioned_notifications.append(sent)
            target.subscriptions[event_type].received(sent)
    elif isinstance(nova.rpc.LEGACY_NOTIFIER, notifications.FakeNotifier):
        sent = notifications.FakeMessage(publisher, message["priority"], event_type, payload, ctxt)
        nova.rpc.LEGACY_NOTIFIER.notifications.append(sent)
