"""Which bus a configuration leads to."""

import oslo_messaging
import pytest
from oslo_config import cfg

from scheduler import conf as options
from scheduler import errors
from scheduler.rpc import transport as bus


@pytest.fixture
def conf():
    """Options of this test alone, without a file."""
    made = cfg.ConfigOpts()
    options.register_all(made)
    made([], project="nova", default_config_dirs=[])
    return made


def configured(conf, folder, text):
    path = folder / "nova.conf"
    path.write_text(text)
    conf(["--config-file", str(path)], project="nova", default_config_dirs=[])
    return conf


def url_of(conf):
    made = bus.get_transport(conf)
    made.cleanup()
    return str(oslo_messaging.TransportURL.parse(conf))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "rabbit:///"),
        ("transport_url = rabbit://u:p@h:1/v", "rabbit://u:p@h:1/v"),
        ("transport_url = fake://\nrabbit_host = h", "fake:///"),
        ("transport_url = rabbit://u:p@h:1\nrabbit_virtual_host = v/w", "rabbit://u:p@h:1/v/w"),
        ("transport_url = rabbit://u:p@h:1/\nrabbit_virtual_host = v", "rabbit://u:p@h:1/"),
        ("transport_url = rabbit://u:p@h:1/x\nrabbit_virtual_host = v", "rabbit://u:p@h:1/x"),
        ("rabbit_port = 7", "rabbit://guest:guest@localhost:7/"),
        ("rabbit_host = h", "rabbit://guest:guest@h:5672/"),
        ("rabbit_host = fd00::1\nrabbit_port = 7", "rabbit://guest:guest@[fd00::1]:7/"),
        (
            "rabbit_userid = o\nrabbit_password = a@b/c\nrabbit_virtual_host = v/w",
            "rabbit://o:a%40b%2Fc@localhost:5672/v/w",
        ),
        ("rabbit_hosts = a:1,b\nrabbit_port = 2", "rabbit://guest:guest@a:1,guest:guest@b:2/"),
        (
            "[oslo_messaging_rabbit]\nrabbit_host = n\nrabbit_virtual_host = /",
            "rabbit://guest:guest@n:5672/",
        ),
        ("rpc_backend = fake", "fake:///"),
        ("rpc_backend = rabbit", "rabbit:///"),
        ("fake_rabbit = true", "fake:///"),
    ],
)
def test_url(conf, tmp_path, text, url):
    assert url_of(configured(conf, tmp_path, f"[DEFAULT]\n{text}\n")) == url


def test_nothing_configured_is_the_bus_in_this_process(conf):
    assert bus.is_in_process(conf)
    assert url_of(conf) == "fake:///"


def test_exchange_is_novas(conf, tmp_path):
    bus.get_transport(conf).cleanup()
    assert conf.control_exchange == "nova"


@pytest.mark.parametrize(
    "url",
    [
        *("u:secret@h", "carrier-pigeon://u:secret@h/", "://u:secret@h"),
        *(
            f"rabbit://u:{each}@h:5672/"
            for each in ("secret/x", "x@secret/", "x@secret?x", "7#secret")
        ),
    ],
)
@pytest.mark.parametrize("group", ["DEFAULT", "oslo_messaging_notifications"])
def test_bad_url_is_one_line_without_password(conf, tmp_path, url, group):
    configured(conf, tmp_path, f"[{group}]\ntransport_url = {url}\n")
    make = bus.get_transport if group == "DEFAULT" else bus.get_notification_transport

    with pytest.raises(errors.ConfigurationError) as caught:
        make(conf)

    text = str(caught.value)
    assert f"[{group}] transport_url" in text
    assert "secret" not in text
    assert "\n" not in text


# --- spans -------------------------------------------------------------------------------


@pytest.fixture
def tracing(conf):
    """Options of the library, with spans wanted by a program."""
    conf([], prog="nova-scheduler", default_config_files=[], default_config_dirs=[])
    bus.load_span_exporter(conf)  # a release of the library that cannot trace
    options = [cfg.BoolOpt("tracing_enabled"), cfg.StrOpt("tracing_service_name", default="x")]
    conf.register_opts([*options, cfg.StrOpt("otlp_protocol")], group=bus.TRACING)
    bus.load_span_exporter(conf)  # nothing is wanted
    conf.set_override("tracing_enabled", True, group=bus.TRACING)
    conf.set_override("otlp_protocol", "http/protobuf", group=bus.TRACING)
    return conf


def test_spans_without_an_exporter_name_what_is_missing(tracing):
    tracing.set_override("otlp_protocol", "grpc", group=bus.TRACING)
    with pytest.raises(errors.ConfigurationError, match=r"tracing_enabled.*grpc.*pip install"):
        bus.load_span_exporter(tracing)


@pytest.mark.parametrize("own", [None, "mine"])
def test_spans_are_named_after_the_program(tracing, own):
    if own:
        tracing.set_override("tracing_service_name", own, group=bus.TRACING)
    bus.load_span_exporter(tracing)
    assert tracing[bus.TRACING].tracing_service_name == (own or "nova-scheduler")
