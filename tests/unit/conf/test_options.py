"""Every option: its help, its old spellings, which of two spellings wins."""

from __future__ import annotations

import pathlib

import pytest
from oslo_config import cfg

from scheduler import conf as project_options

ALL = [
    pytest.param(getattr(group, "name", group), option, id=f"{group}.{option.name}")
    for group, options in project_options.list_opts()
    for option in options
]

# current group, current name, old name in [DEFAULT], text, value
SPELLINGS = [
    ("scheduler", "driver", "scheduler_driver", "chance_scheduler", "chance_scheduler"),
    ("scheduler", "host_manager", "scheduler_host_manager", "my.Manager", "my.Manager"),
    ("scheduler", "max_attempts", "scheduler_max_attempts", "7", 7),
    ("scheduler", "periodic_task_interval", "scheduler_driver_task_period", "9", 9),
    ("filter_scheduler", "available_filters", "scheduler_available_filters", "a.B", ["a.B"]),
    ("filter_scheduler", "enabled_filters", "scheduler_default_filters", "A, B", ["A", "B"]),
    ("filter_scheduler", "weight_classes", "scheduler_weight_classes", "a.W", ["a.W"]),
    ("filter_scheduler", "host_subset_size", "scheduler_host_subset_size", "4", 4),
    ("filter_scheduler", "use_baremetal_filters", "scheduler_use_baremetal_filters", "yes", True),
    (
        "filter_scheduler",
        "baremetal_enabled_filters",
        "baremetal_scheduler_default_filters",
        "A, B",
        ["A", "B"],
    ),
    (
        "filter_scheduler",
        "track_instance_changes",
        "scheduler_tracks_instance_changes",
        "no",
        False,
    ),
    ("filter_scheduler", "max_io_ops_per_host", "max_io_ops_per_host", "-1", -1),
    ("filter_scheduler", "max_instances_per_host", "max_instances_per_host", "0", 0),
    ("filter_scheduler", "ram_weight_multiplier", "ram_weight_multiplier", "-1.5", -1.5),
    ("filter_scheduler", "disk_weight_multiplier", "disk_weight_multiplier", "2", 2.0),
    ("filter_scheduler", "io_ops_weight_multiplier", "io_ops_weight_multiplier", "0", 0.0),
    (
        "filter_scheduler",
        "soft_affinity_weight_multiplier",
        "soft_affinity_weight_multiplier",
        "-1",
        -1.0,
    ),
    (
        "filter_scheduler",
        "soft_anti_affinity_weight_multiplier",
        "soft_anti_affinity_weight_multiplier",
        "3",
        3.0,
    ),
    ("filter_scheduler", "isolated_images", "isolated_images", "i1, i2", ["i1", "i2"]),
    ("filter_scheduler", "isolated_hosts", "isolated_hosts", "h1", ["h1"]),
    (
        "filter_scheduler",
        "restrict_isolated_hosts_to_isolated_images",
        "restrict_isolated_hosts_to_isolated_images",
        "no",
        False,
    ),
    (
        "filter_scheduler",
        "aggregate_image_properties_isolation_namespace",
        "aggregate_image_properties_isolation_namespace",
        "os",
        "os",
    ),
    (
        "filter_scheduler",
        "aggregate_image_properties_isolation_separator",
        "aggregate_image_properties_isolation_separator",
        "_",
        "_",
    ),
    ("notifications", "notification_format", "notification_format", "both", "both"),
    ("pci", "alias", "pci_alias", '{"name": "a1"}', ['{"name": "a1"}']),
]

# name under [database], old group, old name, text, value
DATABASE_SPELLINGS = [
    ("connection", "DEFAULT", "sql_connection", "sqlite://", "sqlite://"),
    ("connection", "database", "sql_connection", "sqlite://", "sqlite://"),
    ("connection", "sql", "connection", "sqlite://", "sqlite://"),
    ("connection_recycle_time", "database", "idle_timeout", "9", 9),
    ("connection_recycle_time", "DEFAULT", "sql_idle_timeout", "9", 9),
    ("connection_recycle_time", "database", "sql_idle_timeout", "9", 9),
    ("connection_recycle_time", "sql", "idle_timeout", "9", 9),
    ("max_pool_size", "DEFAULT", "sql_max_pool_size", "9", 9),
    ("max_pool_size", "database", "sql_max_pool_size", "9", 9),
    ("max_overflow", "DEFAULT", "sql_max_overflow", "9", 9),
    ("max_overflow", "database", "sqlalchemy_max_overflow", "9", 9),
    ("pool_timeout", "database", "sqlalchemy_pool_timeout", "9", 9),
    ("max_retries", "DEFAULT", "sql_max_retries", "-1", -1),
    ("max_retries", "database", "sql_max_retries", "-1", -1),
    ("retry_interval", "DEFAULT", "sql_retry_interval", "9", 9),
    ("retry_interval", "database", "reconnect_interval", "9", 9),
    ("connection_debug", "DEFAULT", "sql_connection_debug", "9", 9),
    ("connection_trace", "DEFAULT", "sql_connection_trace", "yes", True),
    ("sqlite_synchronous", "DEFAULT", "sqlite_synchronous", "no", False),
    ("backend", "DEFAULT", "db_backend", "other", "other"),
]


# name under [placement], old name there, text, value
PLACEMENT_SPELLINGS = [
    ("auth_type", "auth_plugin", "none", "none"),
    ("valid_interfaces", "os_interface", "internal", ["internal"]),
    ("region_name", "os_region_name", "RegionOne", "RegionOne"),
]


def build(*files: pathlib.Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    project_options.register_all(conf)
    conf([f"--config-file={path}" for path in files], project="nova", default_config_dirs=[])
    return conf


@pytest.mark.parametrize(("group", "option"), ALL)
def test_option_says_what_it_does(group: str, option: cfg.Opt) -> None:
    assert option.help
    if group not in ("database", "api_database", "placement"):  # those are texts of libraries
        assert option.help.endswith(".")


@pytest.mark.parametrize(("group", "option"), ALL)
def test_default_is_a_legal_value(group: str, option: cfg.Opt) -> None:
    if option.default is not None and not option.multi:
        assert option.type(option.default) == option.default


def test_every_old_spelling_is_tested() -> None:
    registered = {
        (getattr(group, "name", group), option.name, old.name)
        for group, options in project_options.list_opts()
        for option in options
        for old in option.deprecated_opts
    }
    database = {("database", name, old) for name, _, old, _, _ in DATABASE_SPELLINGS}
    api = {
        ("api_database", name, old)
        for name, group, old, _, _ in DATABASE_SPELLINGS
        if group == "database"
    }
    placement = {("placement", *_dashed(row)) for row in PLACEMENT_SPELLINGS}
    assert registered == {row[:3] for row in SPELLINGS} | database | api | placement


def _dashed(row: tuple[str, str, object, object]) -> tuple[str, str]:
    """The names as keystoneauth1 registers them."""
    name, old = row[:2]
    return (name if name == "auth_type" else name.replace("_", "-")), old


@pytest.mark.parametrize(("name", "old", "text", "value"), PLACEMENT_SPELLINGS)
def test_old_spelling_of_placement(tmp_path, name, old, text, value) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[placement]\n{old} = {text}\n")
    assert build(file).placement[name] == value


@pytest.mark.parametrize(("group", "name", "old", "text", "value"), SPELLINGS)
def test_old_spelling(tmp_path, group, name, old, text, value) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[DEFAULT]\n{old} = {text}\n")
    assert build(file)[group][name] == value


@pytest.mark.parametrize(("name", "group", "old", "text", "value"), DATABASE_SPELLINGS)
def test_old_spelling_of_the_database(tmp_path, name, group, old, text, value) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[{group}]\n{old} = {text}\n")
    assert build(file).database[name] == value


@pytest.mark.parametrize(("name", "group", "old", "text", "value"), DATABASE_SPELLINGS)
def test_old_spelling_of_the_api_database(tmp_path, name, group, old, text, value) -> None:
    """Spellings that say nothing of a database mean the other one."""
    file = tmp_path / "nova.conf"
    file.write_text(f"[{group.replace('database', 'api_database')}]\n{old} = {text}\n")
    found = build(file).api_database[name]
    assert (found == value) == (group == "database")


@pytest.mark.parametrize(("group", "name", "old", "text", "value"), SPELLINGS)
def test_current_spelling(tmp_path, group, name, old, text, value) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[{group}]\n{name} = {text}\n")
    assert build(file)[group][name] == value


OLD = "[DEFAULT]\nscheduler_max_attempts = 4\n"
NEW = "[scheduler]\nmax_attempts = 5\n"


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        pytest.param([OLD + NEW], 5, id="same file: current spelling"),
        pytest.param([NEW + OLD], 5, id="same file, other order"),
        pytest.param([OLD, NEW], 5, id="later file, current spelling"),
        pytest.param([NEW, OLD], 4, id="later file, old spelling"),
    ],
)
def test_which_spelling_wins(tmp_path, texts, value) -> None:
    files = [tmp_path / f"{number}.conf" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    assert build(*files).scheduler.max_attempts == value


def test_environment_beats_files(tmp_path, monkeypatch) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(NEW)
    monkeypatch.setenv("OS_SCHEDULER__MAX_ATTEMPTS", "9")
    assert build(file).scheduler.max_attempts == 9


def test_spellings_of_a_repeatable_option_add_up(tmp_path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(
        "[DEFAULT]\nscheduler_available_filters = a.A\nscheduler_available_filters = b.B\n"
        "[filter_scheduler]\navailable_filters = c.C\n"
    )
    assert sorted(build(file).filter_scheduler.available_filters) == ["a.A", "b.B", "c.C"]


def test_registering_twice_is_harmless() -> None:
    conf = cfg.ConfigOpts()
    project_options.register_all(conf)
    project_options.register_all(conf)
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    assert conf.scheduler.max_attempts == 3
