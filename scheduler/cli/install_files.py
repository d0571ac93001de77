"""``install-files``: what the daemon needs on a host besides its packages."""

import pathlib
import re
import sysconfig
from collections.abc import Iterator, Sequence
from typing import Any, Final

import scheduler
from scheduler import errors
from scheduler.cli.command import Text, action, argument

#: Files as a checkout has them, and where they go: below the root if that is etc, else the prefix.
FILES: Final = (
    ("systemd/nova-scheduler.service", "lib/systemd/system"),
    ("systemd/sysusers.d/*", "lib/sysusers.d"),
    ("systemd/tmpfiles.d/*", "lib/tmpfiles.d"),
    ("etc/logrotate.d/*", "etc/logrotate.d"),
    ("systemd/notify-reload.conf", "share/nova-scheduler"),
    ("etc/nova/*.sample", "share/nova-scheduler"),
    ("etc/prometheus/*", "share/nova-scheduler/prometheus"),
    ("etc/grafana/*", "share/nova-scheduler/grafana"),
    ("manual/man8/*", "share/man/man8"),
    ("etc/bash_completion.d/*", "share/bash-completion/completions"),
    ("docs/runbooks.md", "share/doc/nova-scheduler"),
)
STUBS: Final = (
    ("systemd/nova-conductor-stub.service", "lib/systemd/system"),
    ("systemd/nova-compute-stub.service", "lib/systemd/system"),
)
NEXT: Final = "Next: systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload"


def sources(pattern: str) -> Sequence[pathlib.Path]:
    """The files of *pattern*: those that came with the wheel, or those of this checkout."""
    own = pathlib.Path(sysconfig.get_path("data"), "share/nova-scheduler")
    place = own if own.is_dir() else pathlib.Path(scheduler.__file__).parents[1]
    found = sorted(place.glob(pattern))
    if not found:
        raise errors.NotFound(f"{place}/{pattern} is missing: this installation is not complete")
    return found


def _show_done(command: Any, found: Any) -> None:
    for each in found:
        command.app.stdout.write(f"{each['done']} {each['file']}\n")
    command.app.stdout.write(command.words)


@action(
    Text,
    argument("--root", default="/", metavar="DIR", help="put all below this folder; / by default"),
    argument(
        "--prefix",
        default="/usr/local",
        metavar="DIR",
        help="below the root, the folder of lib and share; /usr/local by default, which no package "
        "of the distribution owns",
    ),
    argument(
        "--programs",
        metavar="DIR",
        help="folder of the programs that the units start; by default that of this program",
    ),
    argument(
        "--unit",
        default="nova-scheduler",
        metavar="NAME",
        help="name of the scheduler's unit, if Nova has the usual one; nova-scheduler by default",
    ),
    argument(
        "--runbooks",
        metavar="URL",
        help="page that the alerts link to, if you publish it; by default the one installed",
    ),
    argument("--stubs", action="store_true", help="also the units of conductor and compute stub"),
    show=_show_done,
)
def install_files(command: Text, args: Any) -> Iterator[dict[str, str]]:
    """Copy units, accounts, folders, log rotation, samples, alerts and dashboard to their places.

    The units start the programs of this installation. A file below etc that was changed is kept.
    """
    programs = args.programs or sysconfig.get_path("scripts")
    runbooks = args.runbooks or f"file://{args.prefix}/share/doc/nova-scheduler/runbooks.md"
    for pattern, folder in (*FILES, *(STUBS if args.stubs else ())):
        for source in sources(pattern):
            keeps = folder.startswith("etc/")
            below = "" if keeps else args.prefix.lstrip("/")
            name = source.name
            if name == "nova-scheduler.service":
                name = f"{args.unit}.service"
            target = pathlib.Path(args.root, below, folder, name)
            text = source.read_text(encoding="utf-8")
            text = text.replace("runbook_url: runbooks.md#", f"runbook_url: {runbooks}#")
            if source.suffix == ".service":
                text = re.sub(r"^ExecStart=/usr/bin/", f"ExecStart={programs}/", text, flags=re.M)
            yield {"done": _write(target, text, keeps=keeps), "file": str(target)}
    command.words = f"{NEXT}\n" if args.root == "/" else ""


def _write(target: pathlib.Path, text: str, *, keeps: bool) -> str:
    """Write *target*; the word for what was done."""
    try:
        if keeps and target.exists() and target.read_text(encoding="utf-8") != text:
            return "kept"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(0o644)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise errors.NovaException(f"{target}: {reason}") from error
    return "installed"
