// One decision with everything that is known of it.

import { cell, count, element, row, several } from "./text.js";

export const OUTCOMES = {
  selected: "host found",
  no_host_fits: "no host fits",
  attempts_exhausted: "attempts used up",
  state_too_old: "state too old",
  invalid_request: "invalid request",
  internal_fault: "internal fault",
};

export const outcomeText = (code) => OUTCOMES[code] ?? code;

const pairText = ({ host, node }) => (node === null || node === host ? host : `${host} (${node})`);

/** The elements that say all of *decision*, as the daemon told it. */
export function explanation(decision) {
  return [
    element("p", { className: "cause" }, causeOf(decision)),
    facts(decision),
    filters(decision),
    refusal(decision.refusal),
    hosts(decision),
    weights(decision.top),
    details(decision),
  ].flat().filter(Boolean);
}

function causeOf(decision) {
  return decision.cause ?? decision.error ?? outcomeText(decision.outcome);
}

function facts(decision) {
  const stages = Object.entries(decision.stages_ms ?? {}).map(([name, ms]) => `${name} ${ms.toFixed(1)}`);
  const age = decision.state_age_seconds;
  const pairs = [
    ["Outcome", outcomeText(decision.outcome) !== causeOf(decision) ? outcomeText(decision.outcome) : null],
    ["Error", decision.error && decision.error !== causeOf(decision) ? decision.error : null],
    ["Fault", decision.fault_id],
    ["Servers", several(decision.num_instances, "instance")],
    ["Time", new Date(decision.started_at).toLocaleString([], { hour12: false })],
    ["Took", `${decision.elapsed_ms.toFixed(1)} ms${stages.length ? ` (${stages.join(", ")})` : ""}`],
    ["State", age === null ? "never read" : `${age.toFixed(2)} s old`],
    ["Claim", claimText(decision.claim)],
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

function filters(decision) {
  const rows = Object.entries(decision.never_evaluated ?? {}).map(([cause, hosts_]) =>
    row([cell("before any filter"), cell(cause), cell(count(hosts_), "number"), cell("", "number")]));
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
  return [
    element("h3", {}, title), ...skipped,
    table(["Filter", "Reason", "#Removed", "#Left"], rows),
  ];
}

function refusal(told) {
  if (!told) return null;
  return generic("Near misses and examples", told);
}

function hosts(decision) {
  if (!decision.chosen?.length) return null;
  const rows = decision.chosen.map((pair, at) => row([
    cell(decision.instance_uuids?.[at] ?? String(at + 1)), cell(pairText(pair)),
    cell((decision.alternates?.[at] ?? []).map(pairText).join(", ") || "–"),
  ]));
  return [element("h3", {}, "Chosen"), table(["Instance", "Host", "Alternates"], rows)];
}

function weights(top) {
  return top ? generic("Best hosts", top) : null;
}

/** Whatever shape it has, as nested lists of names and values. */
function generic(title, value) {
  return [element("h3", {}, title), nested(value)];
}

function nested(value) {
  if (value === null || typeof value !== "object") return element("span", {}, String(value));
  const pairs = Array.isArray(value) ? value.map((each, at) => [String(at + 1), each]) : Object.entries(value);
  return element("dl", {}, ...pairs.flatMap(([name, each]) => [element("dt", {}, name), element("dd", {}, nested(each))]));
}

function details(decision) {
  const text = element("pre", {}, JSON.stringify(decision, null, 2));
  return element("details", {}, element("summary", {}, "As JSON"), text);
}

/** Titles that begin with # are of numbers. */
export function table(titles, rows) {
  const heads = titles.map((title) => element("th", { scope: "col", className: title.startsWith("#") ? "number" : "" }, title.replace("#", "")));
  const made = element("table", {}, element("thead", {}, row(heads)), element("tbody", {}, ...rows));
  return element("div", { className: "wide-table" }, made);
}
