// The tables and small pictures around the heat map.

import { cell, clock, count, decisionLink, element, hostLink, row, seconds } from "./text.js";
import { askedText, outcomeText } from "./explanation.js";

const SVG = "http://www.w3.org/2000/svg";

/** Put *decisions* into *body*, keeping rows (and so the focus) that are there already. */
export function listDecisions(body, decisions) {
  const kept = new Map([...body.rows].map((each) => [each.dataset.key, each]));
  const rows = decisions.map((each) => kept.get(each.key) ?? decisionRow(each));
  const wanted = new Set(rows);
  for (const old of kept.values()) if (!wanted.has(old)) old.remove();
  rows.forEach((each, at) => {
    if (body.rows[at] !== each) body.insertBefore(each, body.rows[at] ?? null);
  });
}

function decisionRow(decision) {
  const isRefused = decision.outcome !== "selected";
  const outcome = element("td", { className: isRefused ? "refused-text" : "" });
  outcome.append(...(isRefused ? refusalText(decision) : hostsText(decision)));
  const made = row([
    cell(clock(decision.started_at), "time"), element("td", {}, decisionLink(decision), element("div", { className: "quiet" }, askedText(decision))), outcome,
    cell(decision.elapsed_ms.toFixed(1), "number"),
  ]);
  made.dataset.key = decision.key;
  made.lastChild.dataset.title = "Milliseconds";
  return made;
}

/** The cause mostly begins with the outcome in words. */
function refusalText({ outcome, cause }) {
  const words = outcomeText(outcome);
  const isSaid = cause.toLowerCase().startsWith(`${words}:`);
  const tag = element("span", { className: "tag" }, words);
  return [tag, element("div", { className: "quiet" }, isSaid ? cause.slice(words.length + 1).trim() : cause)];
}

function hostsText({ hosts, num_instances: instances }) {
  const others = instances - hosts.length;
  const links = hosts.flatMap((each, at) => [at ? ", " : "→ ", hostLink(each)]);
  return [...links, others > 0 ? ` and ${count(others)} more` : ""];
}

export function listReasons(body, reasons) {
  body.replaceChildren(...reasons.map(({ filter, code, numbers }) => row([
    element("td", {}, filter ?? "before any filter", element("div", { className: "reason" }, code)),
    cell(numbers.refused_requests ? count(numbers.refused_requests) : "–", numbers.refused_requests ? "number refused-text" : "number"),
    cell(count(numbers.hosts), "number"),
  ])));
}

/** Bars, one per step of time: found below, refused above. */
export function drawRate(box, { seconds: step, steps }) {
  const highest = Math.max(1, ...steps.map((each) => each.selected + each.refused));
  const [width, height] = [steps.length * 5, 46];
  const svg = document.createElementNS(SVG, "svg");
  const bar = (className, x, y, tall) => {
    const made = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ class: className, x, y, width: 4, height: tall })) made.setAttribute(name, value);
    svg.append(made);
  };
  const ground = document.createElementNS(SVG, "path");
  ground.setAttribute("class", "ground");
  ground.setAttribute("d", `M0 ${height - 0.5}H${width}`);
  svg.append(ground);
  steps.forEach(({ selected, refused }, at) => {
    const [low, high] = [selected, refused].map((each) => (each / highest) * (height - 2));
    if (selected) bar("selected", at * 5, height - 1 - low, low);
    if (refused) bar("refused", at * 5, height - 1 - low - high, high);
  });
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Decisions in steps of ${step} seconds`);
  box.replaceChildren(svg);
  return rateText({ step, steps, highest });
}

/** The step that is still going on does not count. */
function rateText({ step, steps, highest }) {
  const over = steps.slice(0, -1);
  const last = over.slice(-12);
  const sum = (several_) => several_.reduce((total, each) => total + each.selected + each.refused, 0);
  if (!sum(steps)) return "no decision";
  return `${count(sum(last))} in the last minute, at most ${count(Math.round((highest * 60) / step))} per minute`;
}

/** "12 ms", and how long 99 of 100 took at most: *times* are counts by bucket. */
export function timesText(times, perDoubling) {
  const buckets = Object.entries(times).map(([bucket, number]) => [Number(bucket), number]).sort(([a], [b]) => a - b);
  const total = buckets.reduce((sum, [, number]) => sum + number, 0);
  const quantile = (share) => {
    let left = share * total;
    const [bucket] = buckets.find(([, number]) => (left -= number) <= 0) ?? buckets.at(-1);
    return milliseconds(2 ** (bucket / perDoubling));
  };
  return total ? { median: quantile(0.5), most: quantile(0.99) } : null;
}

const milliseconds = (amount) => (amount >= 1000 ? seconds(amount / 1000) : `${Number(amount.toPrecision(2))} ms`);

/** What is wrong, as far as the workers know: a list of texts. */
export function complaints(workers) {
  const silent = workers.all.filter((each) => each.is_silent).map((each) => each.pid);
  const said = silent.length ? [`Not shown: worker ${silent.join(", ")}, which does not answer.`] : [];
  for (const cell_ of workers.cells.values()) {
    if (cell_.is_left_out) said.push(`Cell ${cell_.name ?? cell_.uuid} does not answer: its hosts are left out. ${cell_.error ?? ""}`);
  }
  return said;
}

/** Whose state and decisions these are. */
export function workersText(workers) {
  const [first] = workers.answering;
  if (!first) return "";
  const pids = workers.answering.map((each) => each.pid);
  return `${first.host} · ${pids.length === 1 ? "worker" : `${pids.length} workers:`} ${pids.join(", ")} · ` +
    `${first.driver} · version ${first.version} · up ${seconds(first.now - Math.min(...workers.answering.map((each) => each.started_at)))}`;
}

