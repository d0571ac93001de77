// Asks the daemon every other second what is new, and puts it on the page.

import { complaints, drawRate, listDecisions, listReasons, timesText, workersText } from "./lists.js";
import { listFlavors, listHealth, listSchedulers, listTotals, listUnavailable, unavailableSince } from "./panels.js";
import { clock, count, element, permalink, seconds, several } from "./text.js";
import { explanation } from "./explanation.js";
import { hostView } from "./host.js";
import { Fleet } from "./fleet.js";
import { GROUPINGS, METRICS } from "./metrics.js";
import { HeatMap } from "./heatmap.js";
import { Workers } from "./workers.js";

const EVERY_MS = 2000;
const PATIENCE_MS = 8000;
const ANSWERED_LATE_MS = 10000;
const SECONDS = { hour: 3600, day: 86400 };
const STARTING = 503;
/** When drivers read the state; of others' own nothing is known. */
const READS = {
  filter_scheduler: "the next request reads what changed first",
  caching_scheduler: "it is read on a timer",
};

const $ = (id) => document.getElementById(id);
const fleet = new Fleet();
const workers = new Workers();
const state = { pid: null, shownPid: null, answeredAt: null, age: null, ageAt: 0, failure: null, isPaused: false, isAsking: false, isStarting: false, timer: null, unavailable: [], ready: null, databaseError: null };
const map = new HeatMap($("heat"), $("tip"), $("legend"), describe, $("spoken"), (row) => {
  location.hash = permalink("host", fleet.value(row, "host"));
});

function describe(row) {
  const { zones, aggregates } = fleet.membership(row);
  const cellName = workers.cells.get(fleet.cell(row))?.name ?? fleet.cell(row);
  const pairs = Object.entries(METRICS).map(([, metric]) => [metric.label, metric.text(fleet, row)]);
  pairs.unshift(pairs.pop());
  if (zones.length) pairs.push(["Zone", zones.join(", ")]);
  if (aggregates.length) pairs.push(["Aggregates", aggregates.join(", ")]);
  if (workers.cells.size && cellName) pairs.push(["Cell", cellName]);
  const [, time, reason] = state.unavailable.find(([at]) => at === row) ?? [row, null, null];
  const since = fleet.value(row, "state") ? unavailableSince(fleet.state(row), time) : "";
  if (since) pairs.splice(1, 0, ["Since", since]);
  if (reason) pairs.splice(1, 0, ["Reason given", reason]);
  return pairs;
}

// --- asking ------------------------------------------------------------------------------

async function ask() {
  clearTimeout(state.timer);
  if (state.isAsking) return;
  state.isAsking = true;
  asked("readyz").catch(() => null).then((ready) => { state.ready = ready; health(); });
  const query = new URLSearchParams({ pid: state.pid ?? "", since: fleet.version ?? "", seen: workers.seenText });
  try {
    const answer = await fetch(`status/live?${query}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    state.isStarting = answer.status === STARTING;
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    take(await answer.json());
    state.failure = null;
  } catch (error) {
    state.isStarting &&= error.message === `status ${STARTING}`;
    state.failure = error.name === "TimeoutError" ? "no answer in time" : error.message;
  }
  state.isAsking = false;
  connection();
  if (!state.isPaused && !document.hidden) state.timer = setTimeout(ask, EVERY_MS);
}

/** The document at *url*, whatever the status says of it. */
async function asked(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
  return answer.json();
}

function take(answer) {
  state.answeredAt = Date.now();
  state.shownPid = answer.fleet.pid;
  state.age = answer.fleet.state_age_seconds;
  state.ageAt = performance.now();
  const fresh = workers.apply(answer.workers);
  state.pid = workers.freshest(answer.fleet.pid);
  fleet.apply(answer.fleet);
  state.unavailable = answer.fleet.unavailable;
  tiles(answer.fleet.recorded);
  panels(answer.fleet);
  showFleet();
  if (fresh.length || answer.fleet.is_full) showDecisions();
  showReasons();
  $("notices").replaceChildren(...complaints(workers).map((text) => element("p", { className: "notice" }, text)));
}

// --- showing -----------------------------------------------------------------------------

function panels({ totals, flavors, unavailable, schedulers, error: databaseError }) {
  state.databaseError = databaseError;
  health();
  listTotals($("capacity-rows"), totals);
  $("no-flavors").hidden = listFlavors($("flavor-rows"), flavors) > 0;
  listUnavailable($("unavailable-rows"), fleet, unavailable);
  $("no-unavailable").hidden = unavailable.length > 0;
  const all = fleet.rows.filter((at) => fleet.value(at, "state")).length;
  $("unavailable-note").textContent = all > unavailable.length ? `the first ${count(unavailable.length)} of ${count(all)}` : "";
  listSchedulers($("scheduler-rows"), schedulers, workers.answering[0]?.host);
}

const health = () => listHealth($("health-rows"), state.ready, workers.answering[0], state.databaseError);

/** Servers of the last *window_*: *recorded* in the database, or since the workers' start. */
function servers(window_, recorded) {
  const own = workers.servers(window_);
  const found = { ...own };
  if (recorded) {
    const counts = Object.entries(recorded[window_]);
    found.placed = recorded[window_].selected?.servers ?? 0;
    found.refused = counts.reduce((sum, [outcome, each]) => sum + (outcome === "selected" ? 0 : each.servers), 0);
  }
  const start = Math.min(...workers.answering.map((each) => each.started_at));
  const isYoung = !recorded && Date.now() / 1000 - start < SECONDS[window_];
  $(`tile-${window_}`).textContent = count(found.placed);
  const refused = found.refused ? `${count(found.refused)} refused` : "none refused";
  $(`tile-${window_}-note`).textContent = isYoung ? `${refused}, since ${clock(start)}` : refused;
}

function tiles(recorded) {
  const perState = fleet.perState();
  const total = fleet.rows.length;
  $("tile-hosts").textContent = count(total);
  const others = [...perState].filter(([name]) => name !== "up").map(([name, hosts]) => `${count(hosts)} ${name}`);
  $("tile-hosts-note").textContent = others.length ? others.join(", ") : total ? "all up" : "none known";
  const decided = Object.values(workers.outcomes).reduce((sum, each) => sum + each, 0);
  servers("hour", recorded);
  servers("day", recorded);
  const times = timesText(workers.times, workers.answering[0]?.buckets_per_doubling);
  $("tile-time").textContent = times?.median ?? "–";
  $("tile-time-note").textContent = times ? `99 of 100 within ${times.most}; ${several(decided, "decision")} in the last hour` : "none by these workers in the last hour";
  $("tile-claims").textContent = count(workers.reservations);
  const { races_lost: lost } = workers.servers("hour");
  $("tile-claims-note").textContent = `claims = ${workers.answering[0]?.claims ?? "?"}; ${several(lost, "race")} lost in the last hour`;
  $("rate-note").textContent = drawRate($("rate"), workers.rate);
  $("worker").textContent = workersText(workers);
  tick();
}

/** What grows older by itself. */
function tick() {
  const isKnown = state.answeredAt !== null && state.age !== null;
  const age = isKnown ? state.age + (performance.now() - state.ageAt) / 1000 : null;
  $("tile-age").textContent = isKnown ? seconds(age) : "never read";
  const worker = workers.all.length > 1 && state.shownPid !== null ? `by worker ${state.shownPid}` : "";
  const how = READS[workers.answering[0]?.driver];
  $("tile-age-note").textContent = [worker, how].filter(Boolean).join("; ");
  connection();
}

function connection() {
  const box = $("connection");
  const late = state.answeredAt !== null && Date.now() - state.answeredAt > ANSWERED_LATE_MS;
  const isDead = !state.isPaused && (state.failure !== null || late);
  document.body.classList.toggle("dead", isDead);
  box.dataset.state = isDead ? "dead" : state.isPaused ? "paused" : state.answeredAt === null ? "waiting" : "live";
  const since = state.answeredAt === null ? "" : ` since ${clock(state.answeredAt / 1000)}`;
  const dead = state.isStarting ? "The daemon is starting." : since ? `The daemon has not answered${since}: what is shown is from then.` : "The daemon does not answer.";
  const words = { dead, paused: `Paused${since}`, waiting: "Waiting for the first answer …", live: "live" };
  const text = words[box.dataset.state];
  if (box.textContent !== text) box.textContent = text;
  box.title = state.failure ?? "";
  $("silence").textContent = isDead && since ? `${seconds((Date.now() - state.answeredAt) / 1000)} ago` : "";
  const host = workers.answering[0]?.host;
  document.title = `${isDead ? "▲ no answer – " : ""}nova-scheduler${host ? ` – ${host}` : ""}`;
}

function matching() {
  const wanted = $("find").value.trim().toLowerCase();
  if (!wanted) {
    $("found").textContent = "";
    return null;
  }
  const rows = fleet.rows.filter((row) => fleet.name(row).toLowerCase().includes(wanted));
  $("found").textContent = several(rows.length, "host");
  return new Set(rows);
}

function showFleet() {
  const names = new Map([...workers.cells].map(([uuid, { name }]) => [uuid, name]));
  map.show(fleet, fleet.groups($("grouping").value, names), $("metric").value, matching());
}

function showDecisions() {
  const isWanted = (each) => !$("only-refused").checked || each.outcome !== "selected";
  const shown = workers.decisions.filter(isWanted);
  listDecisions($("decision-rows"), shown);
  $("no-decisions").hidden = shown.length > 0;
}

function showReasons() {
  const reasons = workers.reasons;
  listReasons($("refusal-rows"), reasons);
  $("no-refusals").hidden = reasons.length > 0;
}

/** Show what the address names: #decision/REQUEST or #host/NAME. */
async function showLinked() {
  const [dialog, body] = [$("explanation"), $("explanation-body")];
  const [, kind, name] = /^#(decision|host)\/(.+)$/.exec(location.hash) ?? [];
  if (!kind) {
    if (dialog.open) dialog.close();
    return;
  }
  const shown = location.hash;
  $("explanation-title").textContent = decodeURIComponent(name);
  body.replaceChildren(element("p", { className: "quiet" }, "Asking …"));
  if (!dialog.open) dialog.showModal();
  try {
    const answer = await asked(`status/${kind}s/${name}`);
    if (answer.error && !answer.outcome) throw new Error(answer.error);
    if (shown === location.hash) body.replaceChildren(...(kind === "host" ? hostView(hostFacts(decodeURIComponent(name)), answer.workers) : explanation(answer)));
  } catch (error) {
    body.replaceChildren(element("p", { className: "notice" }, `This ${kind} cannot be shown: ${error.message}.`));
  }
}

function hostFacts(name) {
  const rows = fleet.rows.filter((row) => fleet.value(row, "host") === name);
  return rows.flatMap((row) => [...(rows.length > 1 ? [["Node", fleet.name(row)]] : []), ...describe(row)]);
}

// --- what people do ----------------------------------------------------------------------

function options(select, texts) {
  select.replaceChildren(...Object.entries(texts).map(([value, text]) => element("option", { value }, text)));
}

function pause() {
  state.isPaused = !state.isPaused;
  $("pause").setAttribute("aria-pressed", String(state.isPaused));
  $("pause").textContent = state.isPaused ? "Go on" : "Pause";
  if (state.isPaused) clearTimeout(state.timer);
  else ask();
  connection();
}

options($("metric"), Object.fromEntries(Object.entries(METRICS).map(([name, { label }]) => [name, label])));
options($("grouping"), GROUPINGS);
$("metric").addEventListener("change", showFleet);
$("grouping").addEventListener("change", showFleet);
$("find").addEventListener("input", showFleet);
$("find").addEventListener("keydown", (event) => {
  const [first] = event.key === "Enter" ? matching() ?? [] : [];
  if (first !== undefined) map.goToRow(first);
});
$("only-refused").addEventListener("change", showDecisions);
$("pause").addEventListener("click", pause);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(state.timer);
  else if (!state.isPaused) ask();
});
// A closed dialog leaves no address behind that would open it again.
$("explanation").addEventListener("close", () => { if (location.hash) history.replaceState(null, "", location.pathname + location.search); });
window.addEventListener("hashchange", showLinked);
setInterval(tick, 1000);
ask().then(() => { performance.mark("shown"); showLinked(); });
