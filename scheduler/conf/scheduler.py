"""``[scheduler]``: driver, attempts, workers, freshness (reference page config, section 2)."""

from oslo_config import cfg

GROUP = cfg.OptGroup("scheduler", title="Scheduler", help="The daemon and its driver.")

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "driver",
        default="filter_scheduler",
        deprecated_opts=[cfg.DeprecatedOpt("scheduler_driver", group="DEFAULT")],
        help="What makes the decisions: `filter_scheduler`, `caching_scheduler`, "
        "`chance_scheduler`, `fake_scheduler`, another entry point of the namespace "
        "`nova.scheduler.driver`, or the dotted path of a class. Nova's own dotted paths mean the "
        "driver of that name here.",
    ),
    cfg.StrOpt(
        "host_manager",
        default="host_manager",
        deprecated_opts=[cfg.DeprecatedOpt("scheduler_host_manager", group="DEFAULT")],
        help="What keeps the state of the hosts: `host_manager`, "
        "`ironic_host_manager` for fleets with bare-metal nodes, another entry point of the "
        "namespace `nova.scheduler.host_manager`, or the dotted path of a class.",
    ),
    cfg.BoolOpt(
        "nova_compat_imports",
        default=False,
        help="Where no Nova is installed: let filters, weighers and drivers that were written for "
        "Nova import from it (`nova.scheduler.filters`, `nova.exception`, ...) and get this "
        "project's parts. `scheduler/nova_compat.py` lists what is provided.",
    ),
    cfg.StrOpt(
        "semantics",
        default="current",
        choices=[
            ("current", "as Nova's releases of today"),
            ("newton", "as Nova's release Newton"),
        ],
        help="Whose decisions are taken where the two differ in the same filter, weigher or rule. "
        "The differences are listed on the compatibility page. Filters that only Newton had decide "
        "as in Newton under both.",
    ),
    cfg.IntOpt(
        "max_attempts",
        default=3,
        deprecated_opts=[cfg.DeprecatedOpt("scheduler_max_attempts", group="DEFAULT")],
        help="How many hosts may be tried for one server, at least 1: the chosen one and, after "
        "failures, its alternates. 1 switches retries off.",
    ),
    cfg.IntOpt(
        "periodic_task_interval",
        default=60,
        deprecated_opts=[cfg.DeprecatedOpt("scheduler_driver_task_period", group="DEFAULT")],
        help="Seconds between two runs of the driver's periodic task; the caching driver reads "
        "its hosts then. 0 means 60, a negative value switches the task off.",
    ),
    cfg.IntOpt(
        "discover_hosts_in_cells_interval",
        default=-1,
        min=-1,
        help="Seconds between two searches for compute hosts that no cell has yet, which are then "
        "mapped to their cells, as `nova-manage cell_v2 discover_hosts` does. Of several "
        "schedulers the first by name does it. 0 means 60, -1 switches it off, as does `[database] "
        "read_only`.",
    ),
    cfg.IntOpt(
        "workers",
        min=0,
        help="Number of worker processes. All workers of a daemon share its topic and its name; "
        "the message bus hands each request to one of them. 0: one per CPU. Unset: one per CPU "
        "where `claims` keeps workers from using the same resources twice, else 1.",
    ),
    cfg.StrOpt(
        "claims",
        choices=[
            ("none", "this worker only; the compute host has the last word"),
            ("database", "rows in a database: see `[claims]`"),
            ("placement", "allocations in a Placement service: see `[placement]`"),
        ],
        help="Where hosts are claimed, so that no two schedulers use the same resources. With more "
        "than one worker or daemon, anything but `none`. Unset: `database` where `[database] "
        "connection` is a database that `nova-scheduler-manage db sync` has made and may be "
        "written to, or where `[claims] connection` is set, and the driver claims hosts, which the "
        "filter and the caching driver do; else `none`.",
    ),
    cfg.BoolOpt(
        "accept_options_without_effect",
        default=False,
        help="With `claims = placement`: start although an option is set that changes decisions "
        "in Nova and has no effect here. A warning names it then. False: the start ends, or a "
        "reload keeps the former configuration.",
    ),
    cfg.StrOpt(
        "placement_query",
        default="chosen",
        choices=[
            ("chosen", "decide among all hosts, then ask about the chosen one"),
            ("fleet", "ask for candidates in the fleet, then decide among these, as Nova does"),
        ],
        help="With `claims = placement`: what Placement is asked. The first costs the same in a "
        "fleet of any size. A request is refused by filters, or by candidates in the fleet, with "
        "both.",
    ),
    cfg.IntOpt(
        "placement_refusals",
        default=5,
        min=1,
        help="With `placement_query = chosen`: after so many hosts in a row that Placement refused "
        "for one request, it is asked for candidates in the fleet.",
    ),
    cfg.IntOpt(
        "placement_memory_seconds",
        default=60,
        min=0,
        help="With `placement_query = chosen`: for how long a host is passed over that Placement "
        "refused for the same needs, as long as there are others. 0: not at all.",
    ),
    cfg.IntOpt(
        "placement_deadline_seconds",
        default=45,
        min=1,
        help="With `claims = placement`: the time for all calls of a request. Until then calls "
        "that get no answer, or status 500 and more, are made again; each waits for at most "
        "`[placement] timeout`. It must be shorter than the `rpc_response_timeout` of callers.",
    ),
    cfg.IntOpt(
        "max_placement_results",
        default=1000,
        min=1,
        help="With `claims = placement`: the most allocation candidates in the fleet that "
        "Placement is asked for. Too few hide hosts from filters and weighers. Requests that name "
        "a host with several nodes, or have the hint `group`, `same_host` or `different_host`, ask "
        "for all. Where Placement's own `max_allocation_candidates` is lower, set that number "
        "here: a shorter list is taken for all there is.",
    ),
    cfg.BoolOpt(
        "query_placement_for_availability_zone",
        default=True,
        help="With `claims = placement`: ask only for hosts in the aggregates of the zone that is "
        "asked for. The aggregates must be in Placement, too, where Nova's API puts them.",
    ),
    cfg.BoolOpt(
        "query_placement_for_image_type_support",
        default=False,
        help="With `claims = placement`: ask only for hosts with the trait "
        "`COMPUTE_IMAGE_TYPE_*` of the image's disk format.",
    ),
    cfg.BoolOpt(
        "image_metadata_prefilter",
        default=False,
        help="With `claims = placement`: ask only for hosts with the traits of the image's "
        "`hw_cdrom_bus`, `hw_disk_bus`, `hw_video_model`, `hw_vif_model`, `hw_architecture` and "
        "`hw_emulation_architecture`.",
    ),
    cfg.BoolOpt(
        "query_placement_for_routed_network_aggregates",
        default=False,
        help="With `claims = placement`: ask only for hosts on a segment of each routed network, "
        "or of each port's subnet. It needs `[neutron]`.",
    ),
    cfg.BoolOpt(
        "limit_tenants_to_placement_aggregate",
        default=False,
        help="With `claims = placement`: ask only for hosts in aggregates of the project, which "
        "have it as the value of a metadata key that begins with `filter_tenant_id`. Projects "
        "without such an aggregate may use all hosts.",
    ),
    cfg.BoolOpt(
        "placement_aggregate_required_for_tenants",
        default=False,
        help="With the option before: a project without such an aggregate gets no host.",
    ),
    cfg.BoolOpt(
        "enable_isolated_aggregate_filtering",
        default=False,
        help="With `claims = placement`: keep servers out of aggregates with metadata "
        "`trait:<name>=required` unless they require that trait.",
    ),
    cfg.BoolOpt(
        "expose_reasons",
        default=False,
        help="Add to the text of NoValidHost how many hosts each filter removed and why. Nova "
        "shows the text to the user of the server as its fault. Operators see the same, and more, "
        "with `nova-scheduler-manage explain`.",
    ),
    cfg.IntOpt(
        "max_instances_per_request",
        default=10000,
        min=1,
        help="The most servers one request may ask for; larger requests are refused.",
    ),
    cfg.IntOpt(
        "max_request_entries",
        default=10000,
        min=1,
        help="The most entries that a list or a dict of one request may have: scheduler hints, "
        "extra specs, hosts that are named, members of a group, devices. Larger requests are "
        "refused by name.",
    ),
    cfg.IntOpt(
        "max_request_text_characters",
        default=65535,
        min=1,
        help="The longest value that a scheduler hint or an extra spec may have, JSON queries "
        "included.",
    ),
    cfg.IntOpt(
        "max_request_depth",
        default=64,
        min=32,
        max=128,
        help="In how many levels the lists and dicts of one message may nest, the message being "
        "the first, and the operators of a JSON query in a hint. Nova's own need about 20.",
    ),
    cfg.IntOpt(
        "max_message_bytes",
        default=16 * 1024 * 1024,
        min=64 * 1024,
        help="The largest message that is read from the bus, in bytes, inflated if it is "
        "compressed. A larger one is answered with InvalidRequest, and nothing of it is kept.",
    ),
    cfg.BoolOpt(
        "rpc_fast_path",
        default=True,
        help="Receive requests and send answers by private parts of oslo.messaging, which takes "
        "half of the processor time. Where the installed version lacks such a part, or is newer "
        "than those that were tested, the public interface is used and a log line says so. False: "
        "always the public interface.",
    ),
    cfg.IntOpt(
        "max_decision_seconds",
        default=60,
        min=0,
        help="A request whose decisions take longer is given up between two filters or two "
        "servers, and fails with an internal fault that says where it was. A single filter that "
        "never returns is the watchdog's. 0: no limit.",
    ),
    cfg.IntOpt(
        "answers_kept_seconds",
        default=300,
        min=0,
        help="A repeated request, with the same request id, servers and arguments, gets the same "
        "answer for this many seconds, and nothing is claimed twice. 0: only while the first one "
        "is being decided.",
    ),
    cfg.IntOpt(
        "answers_kept_servers",
        default=10000,
        min=0,
        help="The most servers whose answers each worker keeps that long, the latest first.",
    ),
    cfg.IntOpt(
        "full_refresh_interval_seconds",
        default=300,
        min=0,
        help="Seconds between two full reads of the hosts, which repair whatever the reads of "
        "changed rows missed. 0: every read is a full one.",
    ),
    cfg.IntOpt(
        "refresh_overlap_seconds",
        default=3,
        min=0,
        help="A read looks for changes from this many seconds before the last read on. "
        "Transactions stay open for a moment, and on Nova's tables, where timestamps tell, clocks "
        "of conductors differ a little. What is committed still later is found by the next full "
        "read, on Nova's tables by a read once a minute beside the requests. Raise it where a "
        "database replica lags. Each read lists the changes of so many seconds: 500 of 10,000 "
        "hosts by default.",
    ),
    cfg.IntOpt(
        "state_fresh_seconds",
        min=0,
        help="A request is decided at once on a state that was read at most this many seconds "
        "before it arrived, and waits for a read else. The state is read beside the requests then. "
        "No request is refused, or given fewer alternates than wanted, on a state older than its "
        "arrival: it is read, and decided on once more. Moves, and requests that name a host, wait "
        "for a read in any case. Not set: 1 with `claims = placement`, where Placement verifies "
        "each choice, and 0 else. The caching driver reads when `periodic_task_interval` says.",
    ),
    cfg.IntOpt(
        "max_state_age_seconds",
        default=60,
        min=0,
        help="While the database cannot be read, decisions go on with the last state until it is "
        "this many seconds old; then requests fail with an error of their own. 0: they fail at "
        "once. With `claims = database` they fail as soon as nothing can be claimed.",
    ),
    cfg.IntOpt(
        "cell_timeout_seconds",
        default=60,
        min=1,
        help="How long to wait for the database of a cell, in a fleet of several cells. A cell "
        "that does not answer in time is left out until it answers again; requests do not wait "
        "for it then.",
    ),
    cfg.StrOpt(
        "cell_uuid",
        default="6f70656e-7374-4a63-8b65-6c6c30303031",
        regex="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        help="Cell named in every selection, for conductors that ask in which cell a host is. A "
        "UUID. With Nova's databases of release 16 or later this is without effect: the cells are "
        "those of the table `cell_mappings`.",
    ),
]
