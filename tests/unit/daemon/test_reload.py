"""Reading the configuration again: what takes effect, what needs a restart, what is refused."""

import logging
import pathlib

import pytest
from oslo_db import exception as db_exception

from scheduler import errors
from scheduler.conf import rereading, startup
from scheduler.daemon.reload import Outcome, Reloading
from scheduler.manager import SchedulerManager
from tests.builders import a_conf
from tests.unit.drivers.scheduling import a_driver
from tests.unit.evaluation.builders import a_fleet

PROG = "nova-scheduler"
BEGIN = "[DEFAULT]\ntransport_url = rabbit://u:secret@h/\n"


class Reloaded:
    """A configuration file, and what a program has made of it."""

    def __init__(self, folder, text=""):
        self.path = folder / "nova.conf"
        self.write(text)
        source = startup.Source(["--config-file", str(self.path)], PROG)
        self.first = startup.fill(source)
        self.reloading = Reloading(source, self.first, rereading.LIVE)
        assert self.reload() is Outcome.APPLIED  # the options of the libraries are known now
        self.in_force = []

    def write(self, text):
        self.path.write_text(BEGIN + text)

    def build(self, conf):
        return lambda: self.in_force.append(conf) if hasattr(self, "in_force") else None

    def reload(self):
        return self.reloading.reload(self.build)


@pytest.fixture
def reloaded(tmp_path):
    return Reloaded(tmp_path)


def test_code_written_for_nova_reads_what_may_change(reloaded):
    """It keeps the ``cfg.CONF`` that it imported."""
    reloaded.write("host = other\n[filter_scheduler]\nhost_subset_size = 3\n")
    assert reloaded.reload() is Outcome.RESTART_NEEDED
    assert reloaded.first.filter_scheduler.host_subset_size == 3
    assert reloaded.first.host != "other"


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("", Outcome.APPLIED, "what changed: nothing"),
        (
            "[filter_scheduler]\nhost_subset_size = 3\nram_weight_multiplier = 2\n",
            Outcome.APPLIED,
            "what changed: [filter_scheduler] host_subset_size, "
            "[filter_scheduler] ram_weight_multiplier",
        ),
        ("scheduler_host_subset_size = 3\n", Outcome.APPLIED, "[filter_scheduler] host_subset"),
        ("debug = true\n", Outcome.APPLIED, "[DEFAULT] debug"),
        (
            "[oslo_messaging_rabbit]\nrabbit_qos_prefetch_count = 3\n[database]\nmax_retries = 2\n",
            Outcome.RESTART_NEEDED,
            "for [database] max_retries, [oslo_messaging_rabbit] rabbit_qos_prefetch_count",
        ),
        (
            "[placement]\nauth_type = password\nusername = u\npassword = hidden\n",
            Outcome.RESTART_NEEDED,
            "A restart is needed for [placement] auth_type",
        ),
        ("[scheduler]\nmax_attempts = many\n", Outcome.REFUSED, "[scheduler] max_attempts"),
        ("[scheduler]\nmax_attempts =\n", Outcome.REFUSED, "[scheduler] max_attempts"),
        ("service_down_time =\n", Outcome.REFUSED, "[DEFAULT] service_down_time"),
        ("log_config_append = /no/such.conf\n", Outcome.REFUSED, "/no/such.conf"),
        (
            "scheduler_manager = my.Manager\n[scheduler]\nclaims = placement\n",
            Outcome.REFUSED,
            "scheduler_manager: it has no effect here",
        ),
        ('[pci]\nalias = {"name": "a"}\n', Outcome.APPLIED, "what changed: [pci] alias"),
        ("no setting\n", Outcome.REFUSED, "nova.conf:3"),
        (None, Outcome.REFUSED, "nova.conf"),
    ],
)
def test_what_comes_of_it(reloaded, caplog, text, outcome, said):
    caplog.set_level("INFO")
    before = reloaded.reloading.conf
    if text is None:
        reloaded.path.unlink()
    else:
        reloaded.write(text)
    assert reloaded.reload() is outcome
    assert said in caplog.text
    assert "secret" not in caplog.text
    assert (reloaded.reloading.conf is before) == (outcome is Outcome.REFUSED)
    assert reloaded.in_force == ([] if outcome is Outcome.REFUSED else [reloaded.reloading.conf])


def test_what_needs_a_restart_stays_and_is_named_each_time(reloaded, caplog):
    host = reloaded.reloading.conf.host
    reloaded.write("host = other\n[scheduler]\nmax_attempts = 7\n")
    for _ in range(2):
        caplog.clear()
        assert reloaded.reload() is Outcome.RESTART_NEEDED
        assert "A restart is needed for [DEFAULT] host" in caplog.text
    assert reloaded.reloading.conf.host == host
    assert reloaded.reloading.conf.scheduler.max_attempts == 7
    reloaded.write("")
    assert reloaded.reload() is Outcome.APPLIED


def test_what_was_found_out_at_the_start_is_no_change(reloaded, caplog):
    reloaded.reloading.conf.set_default("claims", "database", group="scheduler")
    for _ in range(2):
        assert reloaded.reload() is Outcome.APPLIED
        assert reloaded.reloading.conf.scheduler.claims == "database"
    reloaded.write("[scheduler]\nclaims = none\n")
    assert reloaded.reload() is Outcome.RESTART_NEEDED
    assert "A restart is needed for [scheduler] claims" in caplog.text
    reloaded.write("")
    assert reloaded.reload() is Outcome.APPLIED
    assert reloaded.reloading.conf.scheduler.claims == "database"


def test_what_cannot_be_built_changes_nothing(reloaded):
    def fail(_conf):
        raise errors.ConfigurationError(option="[scheduler] driver", reason="no")

    before = reloaded.reloading.conf
    reloaded.write("debug = true\n")
    assert reloaded.reloading.reload(fail) is Outcome.REFUSED
    assert reloaded.reloading.conf is before


def test_log_levels(reloaded):
    reloaded.write("debug = true\ndefault_log_levels = some.logger=ERROR\n")
    reloaded.reload()
    assert logging.getLogger().level == logging.DEBUG
    assert logging.getLogger("some.logger").level == logging.ERROR
    assert logging.getLogger("amqp").level == logging.NOTSET
    reloaded.write("")
    reloaded.reload()
    assert logging.getLogger().level == logging.INFO
    assert logging.getLogger("some.logger").level == logging.NOTSET
    assert logging.getLogger("amqp").level == logging.WARNING


def test_forks_begin_with_what_was_read_last(reloaded):
    reloaded.write("[scheduler]\nmax_attempts = 7\n")
    reloaded.reloading.prepare_forks(reloaded.build)
    assert reloaded.reloading.conf.scheduler.max_attempts == 7
    reloaded.write("[scheduler]\nmax_attempts = x\n")
    reloaded.reloading.prepare_forks(reloaded.build)
    assert reloaded.reloading.conf.scheduler.max_attempts == 7


@pytest.mark.parametrize("name", sorted(rereading.LIVE))
def test_the_page_says_what_takes_effect_at_once(name):
    page = (pathlib.Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
    group, option = name
    lines = page[page.index("These take effect at once") :].split("\n* ")
    [line] = [each for each in lines if f"`[{group}]`" in each or f"`[{group}] {option}`" in each]
    assert option == rereading.ALL or f"`{option}`" in line or f"`[{group}] {option}`" in line


def test_another_login_at_placement_needs_a_restart(tmp_path, caplog):
    reloaded = Reloaded(tmp_path, "[placement]\nauth_type = password\npassword = hidden1\n")
    reloaded.write("[placement]\nauth_type = password\npassword = hidden2\n")
    assert reloaded.reload() is Outcome.RESTART_NEEDED
    assert "A restart is needed for [placement] password" in caplog.text
    assert reloaded.reloading.conf.placement.password == "hidden1"
    assert "hidden" not in caplog.text


# --- the scheduler's parts -------------------------------------------------------------------


def test_the_manager_takes_all_over_at_once():
    driver = a_driver(a_fleet(4096, 8192))
    manager = SchedulerManager(a_conf(), driver)
    conf = a_conf(
        enabled_filters=["DiskFilter"],
        weight_classes=[],
        scheduler__max_instances_per_request=1,
        scheduler__max_attempts=7,
        scheduler__expose_reasons=True,
    )
    before = driver.settings

    put_in_force = manager.reconfigured(conf)
    assert driver.settings is before
    put_in_force()

    assert [each.name for each in driver.settings.policy.chain.filters] == ["DiskFilter"]
    assert driver.settings.max_attempts == 7
    assert driver.settings is not before
    assert driver.conf is conf
    assert manager._exposes_reasons
    with pytest.raises(errors.InvalidRequest, match="0 to 1"):
        manager.limits.check_instances("instance_uuids", 2)


def test_ratios_count_with_the_policy_also_while_nothing_can_be_read(monkeypatch):
    fleet = a_fleet(4096, 4096)
    fleet["compute_nodes"][0]["ram_allocation_ratio"] = 0.0
    driver = a_driver(fleet)
    hosts = driver.host_manager
    hosts.refresh()
    taken = []

    def note():
        taken.append(hosts.table.column("ram_allocation_ratio")[:2].tolist())

    def away(*_arguments, **_named):
        raise db_exception.DBConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(hosts._reader, "read", away)
        hosts.reconfigure(a_conf(DEFAULT__ram_allocation_ratio=9.0), note)
    hosts.refresh()
    note()
    assert taken == [[9.0, 1.0]] * 2
