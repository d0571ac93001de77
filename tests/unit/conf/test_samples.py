"""The files under ``etc/nova`` are current and usable."""

import logging
import pathlib
import subprocess
import sys

from oslo_config import cfg
from oslo_messaging._drivers import impl_rabbit

from scheduler.conf import startup

ROOT = pathlib.Path(__file__).parents[3]
SAMPLES = ROOT / "etc" / "nova"
GENERATOR = pathlib.Path(sys.executable).with_name("oslo-config-generator")


def test_sample_configuration_is_current(tmp_path):
    generated = tmp_path / "nova.conf.sample"
    # Its own process: listing oslo.messaging's options fixes the concurrency back end.
    subprocess.run(
        [
            GENERATOR,
            "--config-file",
            SAMPLES / "nova-config-generator.conf",
            "--output-file",
            generated,
        ],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    assert generated.read_text() == (SAMPLES / "nova.conf.sample").read_text(), (
        "run: oslo-config-generator --config-file etc/nova/nova-config-generator.conf"
    )


def test_sample_configuration_does_not_depend_on_the_machine():
    conf = cfg.ConfigOpts()
    startup.parse(startup.Source([], "nova-scheduler", []), conf)
    text = (SAMPLES / "nova.conf.sample").read_text()
    for name in ("host", "my_ip"):
        assert f"#{name} = <" in text
        assert f"#{name} = {conf[name]}\n" not in text


def test_sample_configuration_changes_nothing(tmp_path):
    plain, sampled = cfg.ConfigOpts(), cfg.ConfigOpts()
    startup.parse(startup.Source([], "nova-scheduler", []), plain)
    words = ["--config-file", str(SAMPLES / "nova.conf.sample")]
    startup.parse(startup.Source(words, "nova-scheduler"), sampled)
    for group in ("scheduler", "filter_scheduler", "database", "conductor", "notifications"):
        assert dict(sampled[group]) == dict(plain[group])


def test_sample_logging_file_works(tmp_path, capsys):
    text = (SAMPLES / "logging.conf.sample").read_text()
    assert text.count("/var/log/nova/nova-scheduler.log") == 1
    log = tmp_path / "log"
    file = tmp_path / "logging.conf"
    file.write_text(
        text.replace("/var/log/nova/nova-scheduler.log", str(log)).replace(
            "handlers = stderr", "handlers = file"
        )
    )
    source = startup.Source(["--log-config-append", str(file)], "nova-scheduler", [])
    startup.parse(source, cfg.ConfigOpts())
    logging.getLogger("scheduler.manager").info("decided")
    logging.getLogger("scheduler.manager").debug("not said")
    logging.getLogger("elsewhere").info("not said")
    logging.getLogger(impl_rabbit.LOG.name).info("Reconnected")
    decided, reconnected = log.read_text().splitlines()
    assert decided.endswith(" INFO scheduler.manager [-] decided")
    assert reconnected.endswith(f" INFO {impl_rabbit.LOG.name} [-] Reconnected")
