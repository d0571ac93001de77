// One decision with everything that is known of it.

import { cell, count, element, hostLink, row, several } from "./text.js";

/** More instances than this are not listed one by one. */
const MOST_CHOSEN = 200;

export const OUTCOMES = {
  selected: "host found",
  no_host_fits: "no host fits",
  attempts_exhausted: "attempts used up",
  state_too_old: "state too old",
  invalid_request: "invalid request",
  internal_fault: "internal fault",
};

export const outcomeText = (code) => OUTCOMES[code] ?? code;

/** "3 × m1.small, zone az1, project p". */
export function askedText({ num_instances: instances, flavor, zone, project }) {
  const size = flavor ? `${count(instances)} × ${flavor}` : several(instances, "server");
  return [size, zone && `zone ${zone}`, project && `project ${project}`].filter(Boolean).join(", ");
}

const pairText = ({ host, node }) => (node === null || node === host ? host : `${host} (${node})`);

const pairLink = ({ host, node }) =>
  element("span", {}, hostLink(host), node === null || node === host ? "" : ` (${node})`);

/** The elements that say all of *decision*, as the daemon gave it. */
export function explanation(decision) {
  return [
    element("p", { className: "cause" }, causeOf(decision)),
    facts(decision),
    filters(decision),
    decision.refusal ? refused(decision.refusal) : closest(decision.closest),
    hosts(decision),
    best(decision.top),
    asJSON(decision),
  ].flat().filter(Boolean);
}

function causeOf(decision) {
  return decision.cause || decision.error || outcomeText(decision.outcome);
}

function facts(decision) {
  const stages = Object.entries(decision.stages_ms ?? {}).map(([name, ms]) => `${name.replaceAll("_", " ")} ${ms.toFixed(1)}`);
  const age = decision.state_age_seconds;
  const pairs = [
    ["Outcome", outcomeText(decision.outcome) !== causeOf(decision) ? outcomeText(decision.outcome) : null],
    ["Error", decision.error && decision.error !== causeOf(decision) ? decision.error : null],
    ["Fault", decision.fault_id],
    ["Asked for", askedText(decision)],
    ["Time", new Date(decision.started_at).toLocaleString([], { hour12: false })],
    ["Took", `${decision.elapsed_ms.toFixed(1)} ms${stages.length ? ` (${stages.join(", ")})` : ""}`],
    ["State", age === null ? "never read" : `${age.toFixed(2)} s old`],
    ["Claim", claimText(decision.claim)],
    ["Placement", placementText(decision.placement)],
    ["Cells left out", (decision.cells_left_out ?? []).join(", ")],
    ["Driver", decision.driver],
    ["Seed", decision.seed],
  ];
  const said = pairs.filter(([, text]) => text !== null && text !== undefined && text !== "");
  return element("dl", {}, ...said.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
}

function claimText(claim) {
  if (!claim || (claim.outcome === null && !claim.races_lost)) return null;
  const lost = claim.races_lost ? `, ${several(claim.races_lost, "race")} lost` : "";
  return `${claim.outcome ?? "none"}${lost}`;
}

function placementText(use) {
  if (!use) return null;
  const calls = Object.entries(use.calls).map(([kind, times]) => `${times} × ${kind}`).join(", ");
  const refused = Object.entries(use.refused).map(([host, reason]) => `; refused ${host}${reason ? ` (${reason})` : ""}`);
  return `${use.ms.toFixed(1)} ms (${calls})${use.asked.length ? `, asked about ${use.asked.join(", ")}` : ""}${refused.join("")}`;
}

function filters(decision) {
  const reasons = new Map((decision.before_filters ?? []).map((each) => [each.cause, each]));
  const rows = Object.entries(decision.never_evaluated ?? {}).filter(([, removed]) => removed).map(([cause, removed]) => {
    const { text, wanted, note } = reasons.get(cause) ?? {};
    const why = [text, wanted, note].filter((each) => each && each !== cause).join("; ");
    return row([cell("before any filter"), reasonCell(cause, why), cell(count(removed), "number"), cell("", "number")]);
  });
  for (const { name, end, removed } of decision.filters ?? []) {
    const reasons = Object.entries(removed);
    if (!reasons.length) rows.push(row([cell(name), cell("–"), cell("0", "number"), cell(count(end), "number")]));
    reasons.forEach(([reason, hosts_], at) => rows.push(row([
      cell(at ? "" : name), cell(reason), cell(count(hosts_), "number"),
      cell(at === reasons.length - 1 ? count(end) : "", "number"),
    ])));
  }
  if (!rows.length) return null;
  const skipped = decision.filters_skipped ? [element("p", { className: "quiet" }, "The hosts were forced: no filter was asked.")] : [];
  const title = `What removed hosts: ${count(decision.fleet)} known, ${count(decision.passed)} left`;
  return [element("h3", {}, title), ...skipped, table(["Filter", "Reason", "#Removed", "#Left"], rows)];
}

const reasonCell = (code, text) =>
  element("td", {}, code, text ? element("div", { className: "quiet" }, text) : null);

/** Why nobody fitted: what was wanted, and what those hosts had that came closest. */
function refused(refusal) {
  const title = refusal.index ? `What instance number ${refusal.index + 1} failed by` : "What was wanted, and who came closest";
  const said = refusal.held ? [element("p", {}, `${several(refusal.held, "host")} passed every filter, but others have claimed them.`)] : [];
  return [element("h3", {}, title), ...said, findingsTable(refusal.findings)];
}

/** Of a decision that succeeded: per reason the removed host that came closest. */
function closest(findings) {
  return findings?.length ? [element("h3", {}, "Closest hosts removed"), findingsTable(findings)] : null;
}

function findingsTable(findings) {
  const rows = findings.map((finding) => row([
    reasonCell(finding.filter, finding.reason),
    element("td", {}, [finding.wanted, finding.note ?? finding.text].filter(Boolean).join(" – ")),
    element("td", {}, ...finding.examples.map((each) => example(each, finding.numbers_of))),
    cell(count(finding.removed), "number"),
  ]));
  return table(["Filter and reason", "Wanted", "Closest hosts", "#Removed"], rows);
}

function example({ host, node, found, also_fails: others }, moment) {
  const now = moment === "now" ? " (now)" : "";
  const isNear = others?.length === 0;
  const more = isNear ? " – fails nothing else" : others ? ` – also fails ${others.join(", ")}` : "";
  return element("div", { className: isNear ? "near" : "" }, pairLink({ host, node }), `: ${found}${now}`, element("span", { className: "quiet" }, more));
}

function hosts(decision) {
  if (!decision.chosen?.length) return null;
  const more = decision.chosen.length - MOST_CHOSEN;
  const rows = decision.chosen.slice(0, MOST_CHOSEN).map((pair, at) => row([
    cell(decision.instance_uuids?.[at] ?? String(at + 1)), element("td", {}, pairLink(pair)),
    cell((decision.alternates?.[at] ?? []).map(pairText).join(", ") || "–"),
  ]));
  const rest = more > 0 ? element("p", { className: "quiet" }, `${count(more)} more are in the JSON below.`) : null;
  return [element("h3", {}, "Chosen"), table(["Instance", "Host", "Alternates"], rows), rest];
}

/** The first hosts by weight, and what each weigher gave them. */
function best(top) {
  if (!top?.length) return null;
  const names = top[0].weighers.map((each) => each.name);
  const counts = (name) => top.some(({ weighers }) => weighers.find((each) => each.name === name).weighted !== 0);
  const [shown, silent] = [names.filter(counts), names.filter((name) => !counts(name))];
  const rows = top.map((each) => row([
    element("td", {}, pairLink(each)), cell(short(each.total), "number"),
    ...each.weighers.filter(({ name }) => shown.includes(name)).map(({ raw, normalised, multiplier, weighted }) => element(
      "td", { className: "number" }, short(weighted),
      element("div", { className: "quiet" }, `${short(raw)} → ${short(normalised)} × ${short(multiplier)}`),
    )),
  ]));
  const said = ["Per weigher what it adds to the weight: raw value → normalised × multiplier."];
  if (silent.length) said.push(`Nothing to add had ${silent.join(", ")}.`);
  return [
    element("h3", {}, "Best hosts"),
    table(["Host", "#Weight", ...shown.map((name) => `#${name.replace(/Weigher$/, "")}`)], rows),
    element("p", { className: "quiet" }, said.join(" ")),
  ];
}

const short = (number) => (number === null ? "no number" : Number.isInteger(number) ? count(number) : String(Number(number.toPrecision(4))));

function asJSON(decision) {
  const text = element("pre", {});
  const made = element("details", {}, element("summary", {}, "As JSON"), text);
  made.addEventListener("toggle", () => { text.textContent = JSON.stringify(decision, null, 2); });
  return made;
}

/** Titles that begin with # are of numbers. */
export function table(titles, rows) {
  const heads = titles.map((title) => element("th", { scope: "col", className: title.startsWith("#") ? "number" : "" }, title.replace("#", "")));
  // Where the window is narrow, each cell has its title beside it.
  for (const each of rows) [...each.cells].slice(1).forEach((cell_, at) => { cell_.dataset.title = heads[at + 1].textContent; });
  const made = element("table", { className: "stack" }, element("thead", {}, row(heads)), element("tbody", {}, ...rows));
  return element("div", { className: "wide-table" }, made);
}
