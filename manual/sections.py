"""What the manual pages say that no parser knows."""

DAEMON_STATUS = """
0: told to stop, and stopped in good order. 1: the configuration cannot be used, or the service
could not be
started; one line on standard error says why. 2: the command line was not understood.
"""
DAEMON_SIGNALS = """
SIGTERM: take no more requests, answer those in hand, end; a second one ends at once. SIGINT: end
at once.
SIGHUP: read the configuration again. SIGUSR2: write a report on all threads and options. SIGUSR1,
under systemd: write where the process stands. SIGABRT,
which
systemd's watchdog sends to a service that hangs: write where it hangs, and end.
"""
ENVIRONMENT = """
OS_<GROUP>__<OPTION> sets an option that no file sets, such as OS_DATABASE__CONNECTION.
OS_NOVA_DISABLE_EVENTLET_PATCHING chooses native threads (1, true, yes) or greenlets (any other
text).
"""
DAEMON_ENVIRONMENT = (
    ENVIRONMENT
    + """NOTIFY_SOCKET and WATCHDOG_USEC are systemd's: with them the service tells when it is
ready, how
it is, and that it gets on.
"""
)
FILES = """
/etc/nova/nova.conf: the configuration, unless --config-file names others. /var/lib/nova: the
default database
of an installation without any configuration.
"""
TABLES = """
Commands that list take -f table (default), json, csv, yaml or value, -c COLUMN to choose columns
and --sort-column COLUMN;
commands that show one thing take -f table, json, shell, yaml or value, and -c COLUMN. Their
--help has all of it.
"""
MANAGE_STATUS = """
0: done. 1: it could not be done; one line on standard error says why. 2: the command line was not
understood.

broker check: 10 a broker cannot be reached, 11 TLS failed, 12 the login was refused, 13 the
virtual host was refused,
14 an exchange or queue is missing, different or without a consumer.

config validate: 20 a file is missing or cannot be parsed, 21 a value cannot be used or nobody
knows the option, 22 a plug-in cannot be loaded, 23 a database cannot be used, 24 the message
broker cannot be used, 25 a file, directory or address that an option names cannot be used; the
first of these that occurs.

upgrade check: 0 all is well, 1 a warning, 2 something stops the upgrade, 255 the check itself
failed.
"""
COMMAND_STATUS = """
0: done. 1: it could not be done, or a server that was waited for did not become what was asked
for; one line on
standard error says why. 2: the command line was not understood. For serve see nova-scheduler(8).
"""

OF_PROGRAM: dict[str, dict[str, str]] = {
    "nova-scheduler": {
        "signals": DAEMON_SIGNALS,
        "exit status": DAEMON_STATUS,
        "environment": DAEMON_ENVIRONMENT,
        "files": FILES,
        "examples": "nova-scheduler --config-file /etc/nova/nova.conf\n",
        "see also": "nova-scheduler-manage(8), nova-conductor-stub(8), nova-compute-stub(8)\n",
    },
    "nova-scheduler-manage": {
        "output": TABLES,
        "exit status": MANAGE_STATUS,
        "environment": ENVIRONMENT,
        "files": FILES,
        "examples": """
Make the tables: nova-scheduler-manage db sync

Why does nobody answer? nova-scheduler-manage broker check

What the schedulers see, for a script: nova-scheduler-manage host list -f json
""",
        "see also": "nova-scheduler(8)\n",
    },
    "nova-conductor-stub": {
        "output": TABLES,
        "exit status": COMMAND_STATUS,
        "environment": ENVIRONMENT,
        "files": FILES,
        "examples": """
Be the conductor: nova-conductor-stub serve

Boot five servers and wait for them:
nova-conductor-stub boot web --flavor m1.small --image cirros --count 5 --wait
""",
        "see also": "nova-scheduler(8), nova-compute-stub(8)\n",
    },
    "nova-compute-stub": {
        "signals": DAEMON_SIGNALS,
        "exit status": DAEMON_STATUS,
        "environment": DAEMON_ENVIRONMENT,
        "files": FILES,
        "examples": "Be eight hosts of the default profile: nova-compute-stub --hosts 8\n",
        "see also": "nova-scheduler(8), nova-conductor-stub(8)\n",
    },
}
