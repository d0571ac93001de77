"""The environment of a release of Nova for its functional tests, with what only sources have."""

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.servers import venvs

#: Samples of notifications and of the API, which the tests compare with.
SAMPLES = ("doc/notification_samples/", "doc/api_samples/")


def python(release: str) -> Path:
    """Its Python; everything is installed first if need be."""
    environment = venvs.nova_functional(release)
    found = environment.ensure()
    (packages,) = environment.folder.glob("lib/python*/site-packages")
    # Beside the package Nova looks for api-paste.ini.
    if not (packages / "etc").exists():
        (packages / "etc").symlink_to(environment.folder / "etc")
    if not (packages / "doc").exists():
        _add_samples(found, environment.pinned[0], packages)
    return found


def _add_samples(found: Path, nova: str, packages: Path) -> None:
    ways = ["--quiet", "--no-deps", "--no-binary", ":all:"]
    with tempfile.TemporaryDirectory(dir=packages.parent) as folder:
        command = [found, "-m", "pip", "download", *ways, "--dest", folder, nova]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("nova-*.tar.gz")
        with tarfile.open(archive) as file:
            samples = [each for each in file if each.name.partition("/")[2].startswith(SAMPLES)]
            file.extractall(folder, members=samples, filter="data")
        (made,) = Path(folder).glob("nova-*/doc")
        shutil.move(made, packages / "doc")
