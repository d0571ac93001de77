"""Every option: its help, its old spellings, which of two spellings wins."""

import logging
import math

import pytest
from oslo_config import cfg

from scheduler import conf as project_options
from scheduler.conf import names
from scheduler.conf.effective import masked
from scheduler.conf.filter_scheduler import parse_ratios

LIBRARIES = ("database", "api_database", "placement", "neutron")

# group, name, old group, old name, a value that is not the default
SPELLINGS = [
    row.split()
    for row in """
    scheduler driver DEFAULT scheduler_driver chance_scheduler
    scheduler host_manager DEFAULT scheduler_host_manager my.Manager
    scheduler max_attempts DEFAULT scheduler_max_attempts 7
    scheduler periodic_task_interval DEFAULT scheduler_driver_task_period 9
    filter_scheduler available_filters DEFAULT scheduler_available_filters a.B
    filter_scheduler enabled_filters DEFAULT scheduler_default_filters A,B
    filter_scheduler weight_classes DEFAULT scheduler_weight_classes a.W
    filter_scheduler host_subset_size DEFAULT scheduler_host_subset_size 4
    filter_scheduler use_baremetal_filters DEFAULT scheduler_use_baremetal_filters yes
    filter_scheduler baremetal_enabled_filters DEFAULT baremetal_scheduler_default_filters A,B
    filter_scheduler track_instance_changes DEFAULT scheduler_tracks_instance_changes no
    filter_scheduler max_io_ops_per_host DEFAULT max_io_ops_per_host -1
    filter_scheduler max_instances_per_host DEFAULT max_instances_per_host 0
    filter_scheduler ram_weight_multiplier DEFAULT ram_weight_multiplier -1.5
    filter_scheduler disk_weight_multiplier DEFAULT disk_weight_multiplier 2
    filter_scheduler io_ops_weight_multiplier DEFAULT io_ops_weight_multiplier 0
    filter_scheduler soft_affinity_weight_multiplier DEFAULT soft_affinity_weight_multiplier -1
    filter_scheduler soft_anti_affinity_weight_multiplier \
        DEFAULT soft_anti_affinity_weight_multiplier 3
    filter_scheduler isolated_images DEFAULT isolated_images i1,i2
    filter_scheduler isolated_hosts DEFAULT isolated_hosts h1
    filter_scheduler restrict_isolated_hosts_to_isolated_images \
        DEFAULT restrict_isolated_hosts_to_isolated_images no
    filter_scheduler aggregate_image_properties_isolation_namespace \
        DEFAULT aggregate_image_properties_isolation_namespace os
    filter_scheduler aggregate_image_properties_isolation_separator \
        DEFAULT aggregate_image_properties_isolation_separator _
    notifications notification_format DEFAULT notification_format both
    pci alias DEFAULT pci_alias {"name":"a1"}
    placement auth_type placement auth_plugin none
    neutron auth_type neutron auth_plugin none
    placement valid_interfaces placement os_interface internal
    placement region_name placement os_region_name RegionOne
    database connection DEFAULT sql_connection sqlite://
    database connection database sql_connection sqlite://
    database connection sql connection sqlite://
    database connection_recycle_time database idle_timeout 9
    database connection_recycle_time DEFAULT sql_idle_timeout 9
    database connection_recycle_time database sql_idle_timeout 9
    database connection_recycle_time sql idle_timeout 9
    database max_pool_size DEFAULT sql_max_pool_size 9
    database max_pool_size database sql_max_pool_size 9
    database max_overflow DEFAULT sql_max_overflow 9
    database max_overflow database sqlalchemy_max_overflow 9
    database pool_timeout database sqlalchemy_pool_timeout 9
    database max_retries DEFAULT sql_max_retries -1
    database max_retries database sql_max_retries -1
    database retry_interval DEFAULT sql_retry_interval 9
    database retry_interval database reconnect_interval 9
    database connection_debug DEFAULT sql_connection_debug 9
    database connection_trace DEFAULT sql_connection_trace yes
    database sqlite_synchronous DEFAULT sqlite_synchronous no
    database backend DEFAULT db_backend other
    """.replace("\\\n", "")
    .strip()
    .splitlines()
]
#: The API database has those that are in [database], and none of those that name no database.
API_SPELLINGS = [
    ["api_database", name, "api_database" if group == "database" else group, old, text]
    for its_group, name, group, old, text in SPELLINGS
    if its_group == "database"
]


def build(tmp_path, *texts):
    files = [tmp_path / f"{number}.conf" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    conf = cfg.ConfigOpts()
    project_options.register_all(conf)
    conf([f"--config-file={path}" for path in files], project="nova", default_config_dirs=[])
    return conf


def test_every_option_has_help_and_a_legal_default():
    for group, options in project_options.list_opts():
        for option in options:
            assert option.help, option.name
            assert str(group) in LIBRARIES or option.help.endswith("."), option.name
            if option.default is not None and not option.multi:
                assert option.type(option.default) == option.default


def test_every_old_spelling_is_tested():
    registered = {
        (str(group), option.dest, (old.group or str(group), old.name))
        for group, options in project_options.list_opts()
        for option in options
        for old in option.deprecated_opts
    }
    api = [row for row in API_SPELLINGS if row[2] == "api_database"]
    assert registered == {
        (group, name, (old_group, old)) for group, name, old_group, old, _ in [*SPELLINGS, *api]
    }


@pytest.mark.parametrize(
    ("group", "name", "old_group", "old", "text"), [*SPELLINGS, *API_SPELLINGS]
)
def test_an_old_spelling_means_the_same(tmp_path, group, name, old_group, old, text):
    default = names.value(build(tmp_path), group, name)
    today = names.value(build(tmp_path, f"[{group}]\n{name} = {text}\n"), group, name)
    found = names.value(build(tmp_path, f"[{old_group}]\n{old} = {text}\n"), group, name)
    means_it = group != "api_database" or old_group == "api_database"
    assert today != default
    assert found == (today if means_it else default)


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
def test_which_spelling_wins(tmp_path, texts, value):
    assert build(tmp_path, *texts).scheduler.max_attempts == value


def test_spellings_of_a_repeatable_option_add_up(tmp_path):
    conf = build(
        tmp_path,
        "[DEFAULT]\nscheduler_available_filters = a.A\nscheduler_available_filters = b.B\n"
        "[filter_scheduler]\navailable_filters = c.C\n",
    )
    assert sorted(conf.filter_scheduler.available_filters) == ["a.A", "b.B", "c.C"]


def test_two_configurations_share_no_overrides(tmp_path):
    one, other = build(tmp_path), build(tmp_path)
    for group, [option, *_] in project_options.list_opts():
        default = names.value(other, str(group), option.dest)
        one.set_override(option.dest, None, names.section(str(group)))
        assert names.value(one, str(group), option.dest) is None
        assert names.value(other, str(group), option.dest) == default


@pytest.mark.parametrize(
    ("items", "pairs", "bad"),
    [
        ([], [], ""),
        (["a=1", "a=2.5"], [("a", 1.0), ("a", 2.5)], ""),
        (["b = -2"], [("b ", -2.0)], ""),
        (["f=inf", "f=nan"], [("f", math.inf), ("f", math.nan)], ""),
        (["a=1", "b", "=3", "e=1=2", "", "c="], [("a", 1.0)], "b, =3, e=1=2, , c="),
    ],
)
def test_ratios(items, pairs, bad, caplog):
    with caplog.at_level(logging.WARNING):
        assert str(parse_ratios(items, "an.option")) == str(pairs)
    told = f"Ignoring the invalid elements of the option an.option: {bad}"
    assert caplog.messages == ([told] if bad else [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nothing to hide", "nothing to hide"),
        ("rabbit://nova:hidden@broker:5672/ is away", "rabbit://nova:***@broker:5672/ is away"),
        ("a mysql+pymysql://u:hid@den@db/nova b", "a mysql+pymysql://u:***@db/nova b"),
        ("('postgresql://u:hidden@db/nova',)", "('postgresql://u:***@db/nova',)"),
        ("rabbit://a:hidden@x:1,b:hidden@y:2/v", "rabbit://a:***@y:2/v"),
        ("http://host/path?to=someone@example.org", "http://host/path?to=someone@example.org"),
        ("{'admin_password': 'hidden'}", "{'admin_password': '***'}"),
    ],
)
def test_masked(text, shown):
    assert masked(text) == shown
