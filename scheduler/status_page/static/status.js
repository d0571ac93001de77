// Asks the daemon every other second what is new, and puts it on the page.

import { complaints, drawRate, listDecisions, listReasons, workersText } from "./lists.js";
import { clock, count, element, seconds, several } from "./text.js";
import { explanation } from "./explanation.js";
import { Fleet } from "./fleet.js";
import { GROUPINGS, METRICS } from "./metrics.js";
import { HeatMap } from "./heatmap.js";
import { Workers } from "./workers.js";

const EVERY_MS = 2000;
const PATIENCE_MS = 8000;
const ANSWERED_LATE_MS = 10000;
const STARTING = 503;
/** When drivers read the state; of others' own nothing is known. */
const READS = {
  filter_scheduler: "each request reads what changed",
  caching_scheduler: "it is read on a timer",
};

const $ = (id) => document.getElementById(id);
const fleet = new Fleet();
const workers = new Workers();
const state = { pid: null, shownPid: null, answeredAt: null, age: null, ageAt: 0, failure: null, isPaused: false, isAsking: false, isStarting: false, timer: null };
const map = new HeatMap($("heat"), $("tip"), $("legend"), describe, $("spoken"));

function describe(row) {
  const { zones, aggregates } = fleet.membership(row);
  const cellName = workers.cells.get(fleet.cell(row))?.name ?? fleet.cell(row);
  const pairs = Object.entries(METRICS).map(([, metric]) => [metric.label, metric.text(fleet, row)]);
  pairs.unshift(pairs.pop());
  if (zones.length) pairs.push(["Zone", zones.join(", ")]);
  if (aggregates.length) pairs.push(["Aggregates", aggregates.join(", ")]);
  if (cellName) pairs.push(["Cell", cellName]);
  return pairs;
}

// --- asking ------------------------------------------------------------------------------

async function ask() {
  clearTimeout(state.timer);
  if (state.isAsking) return;
  state.isAsking = true;
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

function take(told) {
  state.answeredAt = Date.now();
  state.shownPid = told.fleet.pid;
  state.age = told.fleet.state_age_seconds;
  state.ageAt = performance.now();
  const fresh = workers.apply(told.workers);
  state.pid = workers.freshest(told.fleet.pid);
  fleet.apply(told.fleet);
  tiles();
  showFleet();
  if (fresh.length || told.fleet.is_full) showDecisions();
  showReasons();
  $("notices").replaceChildren(...complaints(workers).map((text) => element("p", { className: "notice" }, text)));
}

// --- showing -----------------------------------------------------------------------------

function tiles() {
  const perState = fleet.perState();
  const total = fleet.rows.length;
  $("tile-hosts").textContent = count(total);
  const others = [...perState].filter(([name]) => name !== "up").map(([name, hosts]) => `${count(hosts)} ${name}`);
  $("tile-hosts-note").textContent = others.length ? others.join(", ") : total ? "all up" : "none known";
  const outcomes = workers.outcomes;
  const decided = Object.values(outcomes).reduce((sum, each) => sum + each, 0);
  const refused = decided - (outcomes.selected ?? 0);
  $("tile-decisions").textContent = count(decided);
  $("tile-decisions-note").textContent = refused ? `${count(refused)} refused` : "none refused";
  $("rate-note").textContent = drawRate($("rate"), workers.rate);
  $("worker").textContent = workersText(workers);
  tick();
}

/** What grows older by itself. */
function tick() {
  const isKnown = state.answeredAt !== null && state.age !== null;
  const age = isKnown ? state.age + (performance.now() - state.ageAt) / 1000 : null;
  $("tile-age").textContent = isKnown ? `${seconds(age)} ago` : "never";
  const worker = workers.told.length > 1 && state.shownPid !== null ? `by worker ${state.shownPid}` : "";
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
  listDecisions($("decision-rows"), shown, explain);
  $("no-decisions").hidden = shown.length > 0;
}

function showReasons() {
  const reasons = workers.reasons;
  listReasons($("refusal-rows"), reasons);
  $("no-refusals").hidden = reasons.length > 0;
}

async function explain({ key, request_id: request }) {
  const [dialog, body] = [$("explanation"), $("explanation-body")];
  $("explanation-title").textContent = request ?? "(no request id)";
  body.replaceChildren(element("p", { className: "quiet" }, "Asking …"));
  if (!dialog.open) dialog.showModal();
  try {
    const answer = await fetch(`status/decisions/${key}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    body.replaceChildren(...explanation(told));
  } catch (error) {
    body.replaceChildren(element("p", { className: "notice" }, `This decision cannot be shown: ${error.message}.`));
  }
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
setInterval(tick, 1000);
ask().then(() => performance.mark("shown"));
