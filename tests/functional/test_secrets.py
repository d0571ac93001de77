"""Secrets are planted wherever there can be some, and looked for wherever something is told."""

import base64
import json
import signal
import urllib.parse
from dataclasses import dataclass, field

import pytest

from scheduler import errors
from scheduler.db.tables import decisions
from scheduler.recording.segments import SUFFIX, Segment
from tests.waiting import wait_until
from tests.world import databases, fleet
from tests.world.bus import recorded
from tests.world.connection import RawCaller
from tests.world.deployment import Deployment
from tests.world.observing import Endpoint
from tests.world.process import Daemon

USER = "planted"
SELECT = "derived-newton-select_destinations-v4.3-simple.request"
RUN = "derived-havana-run_instance-v2.9.cast"

#: By where each is planted.  All look alike, so that one left out here cannot hide another.
PLACES = (
    *("transport_url", "notification_url", "database", "api_database", "placement", "keystone"),
    *("service_user", "attestation", "auth_token", "admin_password", "injected_files"),
    *("user_data", "undecodable"),
)
SECRETS = {name: f"pl4nted{number:02}{name.replace('_', '')}" for number, name in enumerate(PLACES)}


def needles():
    """What is looked for: every secret, and as base64, in which files and user data travel."""
    encoded = {
        f"{name} in base64": base64.b64encode(secret.encode()).decode().rstrip("=")
        for name, secret in SECRETS.items()
    }
    return {**SECRETS, **encoded}


def leaks(told):
    """Where which secret is, with what stands around it."""
    return [
        (place, name, text[max(0, text.index(needle) - 160) : text.index(needle) + 20])
        for place, text in told.items()
        for name, needle in needles().items()
        if needle in text
    ]


@dataclass
class Site:
    """A scheduler whose configuration is full of secrets, and what was told so far, by place."""

    deployment: Deployment
    daemon: Daemon
    endpoint: Endpoint
    transport_url: str
    database_url: str
    told: dict[str, str] = field(default_factory=dict)

    def run(self, name, *words):
        """Run a command, whatever its status, and keep what it says."""
        done = self.deployment.run(name, *words)
        assert done.stdout + done.stderr, words
        self.told[" ".join((name, *words))] = done.stdout + done.stderr

    def get(self, path):
        status, text = self.endpoint.get(path)
        assert status in (200, 503), (path, status)
        self.told[path] = text


def settings_with(urls, folder):
    """A configuration in which each option that can hold a secret holds one."""
    login = {"auth_type": "password", "auth_url": "http://127.0.0.1:1", "username": "nova"}
    return {
        "DEFAULT": {"host": "sched1", "service_down_time": 3600, "debug": True},
        "recording": {"enabled": True, "directory": folder},
        "api_database": {"connection": urls["api_database"]},
        "explain": {"database": True},
        "metrics_endpoint": {"enabled": True, "port": 0},
        "oslo_messaging_notifications": {
            "driver": "messagingv2",
            "transport_url": urls["notifications"],
        },
        "placement": {**login, "password": SECRETS["placement"]},
        "keystone_authtoken": {**login, "password": SECRETS["keystone"]},
        "service_user": {**login, "password": SECRETS["service_user"]},
        "trusted_computing": {"attestation_auth_blob": SECRETS["attestation"]},
    }


@pytest.fixture(scope="module")
def site(rabbitmq, postgresql, tmp_path_factory):
    vhost, name = rabbitmq.create_vhost(), postgresql.create_database()
    rabbitmq.control("add_user", USER, SECRETS["transport_url"])
    rabbitmq.control("set_permissions", "-p", vhost, USER, ".*", ".*", ".*")
    bus = rabbitmq.url(vhost).replace("guest:guest", f"{USER}:{SECRETS['transport_url']}")
    plain = postgresql.url(name)  # which takes any password
    urls = {
        each: plain.replace("nova@", f"nova:{SECRETS[each]}@")
        for each in ("database", "api_database")
    }
    urls["notifications"] = bus.replace(SECRETS["transport_url"], SECRETS["notification_url"])
    folder = tmp_path_factory.mktemp("secrets")
    made = Deployment(folder, bus, urls["database"], settings=settings_with(urls, folder))
    try:
        fleet.install(plain)
        daemon = made.start_scheduler().wait_ready()
        yield Site(made, daemon, Endpoint.of(daemon), bus, plain)
    finally:
        made.close()
        rabbitmq.control("delete_user", USER)
        postgresql.drop_database(name)


def a_request(name, request_id):
    """A recorded request with secrets in its context."""
    message = recorded(name)
    message["_context_auth_token"] = SECRETS["auth_token"]
    message["_context_request_id"] = request_id
    message["_context_service_catalog"] = [{"token": SECRETS["auth_token"]}]
    return message


def with_secrets_of_a_server(message):
    """What the API of old sent along: passwords, files, user data."""
    properties = message["args"]["request_spec"]["instance_properties"]
    properties["user_data"] = base64.b64encode(SECRETS["user_data"].encode()).decode()
    properties["admin_pass"] = SECRETS["admin_password"]
    message["args"]["request_spec"]["admin_password"] = SECRETS["admin_password"]
    files = [["/etc/key", base64.b64encode(SECRETS["injected_files"].encode()).decode()]]
    message["args"] |= {"admin_password": SECRETS["admin_password"], "injected_files": files}
    return message


def ask_for_everything(site):
    """Requests that succeed, fail, are refused or cannot be read; their replies are kept."""
    with RawCaller(site.transport_url) as raw:
        good = a_request(SELECT, "req-good")
        answers = {"good": raw.call(good)}
        too_much = a_request(SELECT, "req-too-much")
        spec = too_much["args"]["spec_obj"]["nova_object.data"]
        spec["flavor"]["nova_object.data"]["memory_mb"] = 10**9
        answers["too much"] = raw.call(too_much)
        old = with_secrets_of_a_server(a_request(RUN, "req-old"))
        for version, method in (("2.9", "run_instance"), ("2.6", "select_hosts")):
            asked = {**old, "version": version, "method": method}
            answers[f"{method} with all"] = raw.call(asked)
            few = {name: old["args"][name] for name in ("request_spec", "filter_properties")}
            answers[f"{method} with few"] = raw.call({**asked, "args": few})
        odd = {**good, "args": {**good["args"], "admin_password": SECRETS["admin_password"]}}
        answers["odd"] = raw.call(odd)
        wrong = {**good, "args": {"spec_obj": old["args"]["request_spec"]}}
        answers["wrong"] = raw.call({**wrong, "version": "4.5"})
        raw.publish("{not json: " + SECRETS["undecodable"])
        answers["after"] = raw.call(good)
    assert not answers["good"]["failure"]
    assert answers["too much"]["failure"]
    assert answers["odd"]["failure"]
    site.told |= {f"reply to {name}": json.dumps(reply) for name, reply in answers.items()}


def look_at_pages(site):
    for path in ("/", "/metrics", "/healthz", "/readyz", "/status", "/status/live"):
        site.get(path)
    for path in ("/status/worker", "/status/worker/fleet"):
        site.get(path)
    (worker,) = json.loads(site.told["/status/live"])["workers"]
    assert worker["decisions"]["new"]
    names = {each["request_id"] for each in worker["decisions"]["new"]} - {None}
    assert names
    for name in names:
        site.get(f"/status/decisions/{urllib.parse.quote(name, safe='')}")


def run_commands(site):
    manage = "nova-scheduler-manage"
    for words in (
        ("explain", "req-too-much"),
        ("explain", "req-good", "--json"),
        ("config", "show"),
        ("config", "validate"),
        ("state", "show", "-f", "json"),
        ("broker", "check"),
        ("db", "check"),
        ("upgrade", "check"),
    ):
        site.run(manage, *words)
    site.deployment.configure({"DEFAULT": {"transport_url": f"{site.transport_url}nosuch"}})
    site.run(manage, "--debug", "broker", "check")
    nobody = f"postgresql+psycopg://nova:{SECRETS['database']}@127.0.0.1:1/nova"
    site.deployment.configure({"database": {"connection": nobody}})
    site.run(manage, "--debug", "db", "check")
    odd = f"postgresql+psycopg://nova:{SECRETS['database']}@[127.0.0.1:1/nova"
    site.deployment.configure({"database": {"connection": odd}})
    site.run(manage, "host", "list")
    site.run("nova-scheduler")


def report(site):
    site.daemon.signal(signal.SIGUSR2)
    wait_until(lambda: " shown, newest first" in site.daemon.log, 60, "a report")
    wait_until(lambda: "attestation_auth_blob" in site.daemon.log, 60, "its options")


def table_of_decisions(site):
    with databases.opened(site.database_url) as database, database.read() as connection:
        rows = connection.execute(decisions.select()).all()
    return repr(rows) if rows else ""


@pytest.mark.timeout(300)
def test_nothing_secret_is_told_anywhere(site):
    ask_for_everything(site)
    look_at_pages(site)
    report(site)
    wait_until(lambda: table_of_decisions(site), 60, "decisions in the table")
    site.told["table of decisions"] = table_of_decisions(site)
    run_commands(site)
    (path,) = site.deployment.folder.glob(f"*{SUFFIX}")
    site.told["recording"] = repr([*Segment(path, errors.Faults(lenient=True))])
    assert "req-too-much" in site.told["recording"]
    site.told["log"] = site.daemon.log + site.daemon.stdout
    assert "DEBUG" in site.told["log"]

    assert leaks(site.told) == []


def test_what_is_looked_for_would_be_found():
    encoded = base64.b64encode(f"{SECRETS['user_data']}\n".encode()).decode()
    told = {"a": f"x{SECRETS['placement']}x", "b": encoded, "c": "nothing"}
    found = [(place, name) for place, name, _around in leaks(told)]
    assert ("a", "placement") in found
    assert not [place for place, _name in found if place == "c"]
