"""The status page of a real daemon with two workers and two thousand hosts, in a real browser."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import port_for
import pytest

from conductor_stub.compute import registration
from scheduler import errors
from scheduler.db import aggregates, services
from scheduler.rpc.context import RequestContext
from tests.waiting import wait_until
from tests.world import fleet
from tests.world.bus import scheduler_api
from tests.world.deployment import Deployment
from tests.world.fleet import a_spec

ROOT = Path(__file__).parents[2]
HOSTS = 2000
EVIL = "<script>window.pwned=1</script>"
EVIL_REQUEST = "<img src=x onerror=window.pwned=1>"
#: A daemon that was ended refuses connections, and one that is starting says so.
EXPECTED = r"ERR_(CONNECTION|EMPTY_RESPONSE)|status of 503"
#: Nothing moves any more.
SETTLED = (
    "['flavor-rows', 'health-rows', 'scheduler-rows']"
    ".every(each => document.getElementById(each).rows.length)"
)
HOME, RIGHT, ESCAPE, ENTER = ("Home", 36), ("ArrowRight", 39), ("Escape", 27), ("Enter", 13)
NAMES = [EVIL, *(f"cmp{number:05d}" for number in range(1, HOSTS))]


@dataclass
class Cloud:
    """A scheduler, what it reads, and where its page is."""

    deployment: Deployment
    url: str

    def select(self, request_id, hosts=(), **flavor):
        """Ask for a host, maybe one of *hosts*; its name, or None if there is none."""
        name = str(uuid.uuid4())
        spec = a_spec(name, force_hosts=list(hosts) or None)
        for field, value in flavor.items():
            setattr(spec if field == "availability_zone" else spec.flavor, field, value)
        context = RequestContext(user_id="u", project_id="p", request_id=request_id)
        with scheduler_api(self.deployment.folder, self.deployment.transport_url) as api:
            try:
                ((chosen, *_others),) = api.select_destinations(
                    context, spec, [name], return_objects=True, return_alternates=True
                )
            except errors.NoValidHost:
                return None
        return str(chosen.service_host)

    def change(self, function, *arguments, **named):
        with self.deployment.database() as database, database.write() as connection:
            function(connection, *arguments, **named)


@contextlib.contextmanager
def a_cloud(on_sqlite, fill):
    port = port_for.select_random(set(range(12000, 20000)))  # below those of the servers
    settings = {
        "DEFAULT": {"service_down_time": 3600, "debug": False},
        "scheduler": {"workers": 2, "claims": "none"},
        "explain": {"database": True},
        "metrics_endpoint": {"enabled": True, "port": port},
    }
    with on_sqlite(settings=settings) as deployment:
        with deployment.database() as database:
            fill(database)
        deployment.start_scheduler().wait_ready()
        yield Cloud(deployment, f"http://127.0.0.1:{port}/status")


@pytest.fixture(scope="module")
def cloud(on_sqlite):
    with a_cloud(on_sqlite, install) as made:
        yield made


def install(database):
    """Hosts of three zones with more or less memory left, one of them with a name that bites."""
    fleet.install(str(database.url), ["spare"])
    with database.write() as connection:
        registration.put_services(connection, NAMES, 60)
        free = [fleet.MEMORY_MB * (number % 9) // 9 for number in range(len(NAMES))]
        rows = [
            {**fleet.node(host), "free_ram_mb": mb, "ram_allocation_ratio": 1.0}
            for host, mb in zip(NAMES, free, strict=True)
        ]
        registration.put_nodes(connection, rows)
        for zone in range(3):
            metadata = {"availability_zone": f"zone <b>{zone}</b>"}
            hosts = NAMES[zone::4]
            aggregates.create(connection, f"rack {zone}", metadata=metadata, hosts=hosts)


@pytest.fixture
def page(cloud, chromium):
    """The page, opened and filled; nothing was complained of in the end."""
    chromium.show(1280, 900)
    chromium.open(cloud.url)
    chromium.wait("performance.getEntriesByName('shown').length")
    yield chromium
    assert chromium.run("window.pwned") is None
    assert [each for each in chromium.complaints if not re.search(EXPECTED, each)] == []


def text(page, element):
    """What the element of that id says."""
    return str(page.run(f"document.getElementById({json.dumps(element)}).textContent"))


def choose(page, element, value):
    page.run(
        f"(field => {{ field.value = {json.dumps(value)}; field.focus();"
        " field.dispatchEvent(new Event('input')); field.dispatchEvent(new Event('change')); })"
        f"(document.getElementById({json.dumps(element)}))"
    )


def wait_for_decision(page, request_id):
    """The button that explains it, once it is listed."""
    selector = f"#decision-rows a[title={json.dumps(request_id)}]"
    button = f"document.querySelector({json.dumps(selector)})"
    page.wait(button)
    return button


def explain(page, request_id):
    """Open the explanation of a decision; returns what it says."""
    page.run(f"{wait_for_decision(page, request_id)}.click()")
    page.wait("document.querySelector('#explanation[open] details')")
    return text(page, "explanation-body")


def test_all_hosts_are_shown(page):
    assert text(page, "tile-hosts") == f"{HOSTS + 1:,}"
    assert text(page, "tile-hosts-note") == "all up"
    assert "2 workers" in text(page, "worker")
    asked = page.run("performance.getEntriesByType('resource').map(each => each.name)")
    assert [name.partition("?")[2] for name in asked if "/live" in name][:1] == [
        "pid=&since=&seen="
    ]
    assert sum("since=&" in name for name in asked) == 1  # the whole fleet once, ahead of scripts
    drawn = page.run(
        "(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " const seen = new Set();"
        " for (let i = 0; i < d.length; i += 4) seen.add(d.slice(i, i + 4).join());"
        " return seen.size; })(document.getElementById('heat'))"
    )
    assert drawn >= 6  # steps of the scale


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_the_window_in_light_and_dark(cloud, page, width, dark):
    cloud.select("req-fits")
    cloud.select("req-refused", memory_mb=2**30)
    page.show(width, 844, dark=dark)
    page.open(cloud.url)
    wait_for_decision(page, "req-refused")
    assert page.run("document.documentElement.scrollWidth") == width
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(17, 21, 27)") is dark
    explain(page, "req-refused")
    assert page.run("document.getElementById('explanation').scrollWidth") <= width


def test_a_square_tells_of_its_host_by_pointer_and_keyboard(page):
    page.wait(SETTLED)
    page.run("document.getElementById('map').scrollIntoView({ block: 'center' })")
    box = page.run("(b => [b.x, b.y])(document.getElementById('heat').getBoundingClientRect())")
    page.point(box[0] + 3, box[1] + 3)
    page.wait("!document.getElementById('tip').hidden")
    told = text(page, "tip")
    assert "free of" in told
    assert "zone <b>0</b>" in told  # as text
    page.point(box[0] + 3, box[1] - 30)
    page.wait("document.getElementById('tip').hidden")

    page.run("document.getElementById('heat').focus()")
    page.press(*HOME)
    page.press(*HOME)
    first = text(page, "spoken")
    page.press(*RIGHT)
    assert first != text(page, "spoken")
    assert first.startswith(EVIL)  # sorts before the letters
    page.press(*ESCAPE)
    assert page.run("document.getElementById('tip').hidden")


def test_hosts_are_found_and_grouped(page):
    choose(page, "find", "CMP0199")
    assert text(page, "found") == "10 hosts"
    page.press(*ENTER)
    assert text(page, "spoken").startswith("cmp01990")
    choose(page, "find", "")
    for metric in ("vcpus", "disk", "instances", "builds", "failures", "state", "memory"):
        choose(page, "metric", metric)
        assert text(page, "legend")
    for grouping in ("zone", "aggregate", "cell", "state", "nothing"):
        choose(page, "grouping", grouping)


def test_names_are_text_wherever_they_show(cloud, page):
    cloud.select(EVIL_REQUEST)
    explain(page, EVIL_REQUEST)
    assert text(page, "explanation-title") == EVIL_REQUEST
    page.run("document.querySelector('#explanation button').click()")
    page.wait("!document.getElementById('explanation').open")
    choose(page, "find", "<script>")
    page.press(*ENTER)
    assert text(page, "tip").startswith(EVIL)
    assert page.run("document.querySelectorAll('img, main script').length") == 0


def test_decisions_appear_by_themselves(cloud, page):
    chosen = cloud.select("req-one-more")
    assert chosen is not None
    wait_for_decision(page, "req-one-more")
    told = explain(page, "req-one-more")
    assert told.startswith(f"{chosen} was chosen")
    assert "Best hosts" in told
    page.press(*ESCAPE)
    choose(page, "find", chosen)
    page.press(*ENTER)

    def seen():
        cloud.select("req-there", hosts=[chosen])
        return bool(page.run("/Instances[1-9]/.test(document.getElementById('tip').textContent)"))

    wait_until(seen, 60)  # whichever worker it is whose fleet is shown


def test_what_changes_in_the_database_is_seen(cloud, page):
    for is_disabled, reason, note in ((True, "broken", "1 disabled"), (False, None, "all up")):
        name, values = ("cmp00077", services.COMPUTE_BINARY), {"disabled": is_disabled}
        cloud.change(services.change, *name, **values, disabled_reason=reason)

        def is_seen(note=note):
            cloud.select("req-look")  # a worker sees it with its next request
            return note in text(page, "tile-hosts-note")

        wait_until(is_seen, 60)
        unavailable = text(page, "unavailable-rows")
        assert ("cmp00077disabled" in unavailable, "broken" in unavailable) == 2 * (is_disabled,)
        assert not is_disabled or re.search(r"disabled\d\d:\d\d:\d\d, \S+ s ago", unavailable)


def test_what_is_left_and_what_it_all_depends_on(page):
    capacity = text(page, "capacity-rows")
    assert all(f"zone <b>{number}</b>" in capacity for number in range(3))
    assert re.search(r"of [\d,]+ \([\d,]+ × 16\), \d+ used", capacity)  # vCPUs, overcommitted
    page.wait("/m1.small/.test(document.getElementById('flavor-rows').textContent)")
    assert re.search(r"m1.small.*disk[\d,]+(memory|vCPUs|disk)", text(page, "flavor-rows"))
    page.wait("/this one/.test(document.getElementById('scheduler-rows').textContent)")
    # It is asked for beside all else, and may come last.
    page.wait("/are taken/.test(document.getElementById('health-rows').textContent)")
    health = text(page, "health-rows")
    for part in ("Broker● wellrequests are taken", "***@127.0.0.1", "Database● well", "sqlite:/"):
        assert part in health


def test_links_to_a_decision_and_a_host_by_keyboard_and_address(cloud, page):
    cloud.select("req-linked", availability_zone="zone <b>1</b>")
    cloud.select("req-refused-here", memory_mb=2**30)
    row = wait_for_decision(page, "req-linked")
    assert "1 × m1.small, zone zone <b>1</b>, project project" in page.run(
        f"{row}.closest('td').textContent"
    )
    page.run(f"{row}.focus()")
    page.press(*ENTER)
    page.wait("document.querySelector('#explanation[open] details')")
    assert page.run("location.hash") == "#decision/req-linked"
    page.run("document.querySelector('#explanation a').click()")
    page.wait("/^#host/.test(location.hash) && document.querySelector('#explanation h3')")
    page.open(f"{cloud.url}?again#host/cmp00008")
    page.wait("document.querySelectorAll('#explanation[open] table').length >= 2")
    told = text(page, "explanation-body")
    assert "free of" in told
    assert re.search("Why it was refused.*RamFilterram.physical.*needs more memory", told)
    page.press(*ESCAPE)
    page.wait("location.hash === ''")


def test_a_few_hosts_have_their_names_beside_them(on_sqlite, chromium):
    names = [f"few{number}" for number in range(8)]
    with a_cloud(on_sqlite, lambda database: fleet.install(str(database.url), names)) as few:
        for width in (1280, 390):
            chromium.show(width, 900)
            chromium.open(few.url)
            chromium.wait("performance.getEntriesByName('shown').length")
            chromium.wait(SETTLED)
            chromium.run("document.getElementById('heat').scrollIntoView({ block: 'center' })")
            box = "(b => [b.x, b.y])(document.getElementById('heat').getBoundingClientRect())"
            x, y = chromium.run(box)
            chromium.point(x + 120, y + 10)  # at its name
            chromium.wait("/^few0/.test(document.getElementById('tip').textContent)")
            assert chromium.run("document.documentElement.scrollWidth") == width
        assert chromium.complaints == []


def test_a_refusal_is_explained(cloud, page):
    assert cloud.select("req-too-big", memory_mb=2**30) is None
    told = explain(page, "req-too-big")
    assert told.startswith("No host fits: RamFilter")
    assert f"{2**30} MiB of memory wanted" in told
    assert "fails nothing else" in told
    assert f"{HOSTS + 1:,} known, 0 left" in told
    page.run("document.querySelector('#explanation summary').click()")
    page.wait("/no_host_fits/.test(document.querySelector('#explanation pre').textContent)")
    reasons = text(page, "refusal-rows")
    assert "RamFilter" in reasons
    page.press(*ESCAPE)
    page.run("document.getElementById('only-refused').click()")
    outcomes = page.run("document.querySelectorAll('#decision-rows .tag').length")
    assert outcomes == page.run("document.getElementById('decision-rows').rows.length") > 0


def test_a_worker_that_hangs_is_named(page):
    named = re.search(r"2 workers: (\d+), \d+ ", text(page, "worker"))
    assert named is not None
    pid = int(named[1])
    os.kill(pid, signal.SIGSTOP)
    try:
        page.wait("document.getElementById('notices').textContent")
        assert text(page, "notices") == f"Not shown: worker {pid}, which does not answer."
        assert page.run("document.getElementById('connection').dataset.state") == "live"
        assert text(page, "tile-hosts") == f"{HOSTS + 1:,}"
    finally:
        os.kill(pid, signal.SIGCONT)
    page.wait("!document.getElementById('notices').textContent")


def test_the_measurement_runs(chromium):
    command = [sys.executable, "-m", "benchmarks.status_page", "200", "--times", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^200 hosts; .*\n( +[\d.]+ ms  .*\n){2}in the browser, ", done.stdout)
    assert len(re.findall(r"^ +\d+ ms  (first|later)", done.stdout, re.MULTILINE)) == 2


def test_pausing_and_a_daemon_that_is_gone_and_comes_back(cloud, page):
    page.run("document.getElementById('pause').click()")
    assert text(page, "connection").startswith("Paused since")
    page.run("document.getElementById('pause').click()")
    page.wait("document.getElementById('connection').dataset.state === 'live'")
    cloud.select("req-before")
    wait_for_decision(page, "req-before")
    day = "Number(document.getElementById('tile-day').textContent.replaceAll(',', ''))"
    page.wait(f"{day} >= 1")
    placed = page.run(day)
    (daemon,) = cloud.deployment.daemons
    daemon.terminate()
    page.wait("document.getElementById('connection').dataset.state === 'dead'")
    assert "has not answered since" in text(page, "connection")
    assert text(page, "tile-hosts") == f"{HOSTS + 1:,}"
    cloud.deployment.start_scheduler().wait_ready()
    page.wait("document.getElementById('connection').dataset.state === 'live'")
    cloud.select("req-after")
    wait_for_decision(page, "req-after")
    page.open(f"{cloud.url}?anew#decision/req-before")  # which no worker remembers
    page.wait("/was chosen/.test(document.getElementById('explanation-body').textContent)")
    page.wait(f"{day} > {placed}")  # of both daemons
    assert text(page, "rate-note").endswith("per minute")
