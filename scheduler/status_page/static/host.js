// One host: its numbers, what is on it, and what became of it in the decisions that are kept.

import { cell, clock, count, decisionLink, element, row, several } from "./text.js";
import { askedText, table } from "./explanation.js";

const FATES = { chosen: "chosen", passed: "passed, another was chosen", removed: "refused" };

/** *facts* are pairs that the fleet knows; *workers* is what each worker says of the host. */
export function hostView(facts, workers) {
  const decisions = workers.flatMap((each) => each.decisions).sort((a, b) => b.started_at - a.started_at);
  return [
    element("dl", {}, ...facts.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])),
    ...servers(workers[0]),
    ...refusals(decisions),
    ...decided(decisions),
  ];
}

function servers({ servers: several_, reservations }) {
  const title = element("h3", {}, `On it: ${several(several_.length, "server")}${reservations ? `, ${count(reservations)} of them reserved, not reported yet` : ""}`);
  if (!several_.length) return [title];
  const rows = several_.map((each) => row([
    cell(each.uuid), cell(each.flavor ?? "–"), cell(each.project ?? "–"), cell(each.is_reserved ? "reserved" : each.state ?? "–"),
  ]));
  return [title, table(["Server", "Flavor", "Project", "State"], rows)];
}

/** Why decisions refused the host, the most frequent reason first. */
function refusals(decisions) {
  const counts = new Map();
  for (const { fate, filter, reason, text } of decisions) {
    if (fate !== "removed") continue;
    const key = `${filter} ${reason}`;
    counts.set(key, { filter, reason, text, times: (counts.get(key)?.times ?? 0) + 1 });
  }
  const rows = [...counts.values()].sort((a, b) => b.times - a.times).map(({ filter, reason, text, times }) => row([
    element("td", {}, filter, element("div", { className: "quiet" }, reason)), cell(text), cell(count(times), "number"),
  ]));
  const title = element("h3", {}, rows.length ? "Why it was refused" : "Not refused by any decision that is kept");
  return rows.length ? [title, table(["Filter and reason", "Meaning", "#Times"], rows)] : [title];
}

function decided(decisions) {
  if (!decisions.length) return [];
  const rows = decisions.map((each) => row([
    cell(clock(each.started_at), "time"),
    element("td", {}, decisionLink(each), element("div", { className: "quiet" }, askedText(each))),
    element("td", { className: each.fate === "removed" ? "refused-text" : "" }, FATES[each.fate],
      element("div", { className: "quiet" }, each.fate === "removed" ? `${each.filter}: ${each.text}` : each.times > 1 ? several(each.times, "server") : "")),
  ]));
  return [element("h3", {}, "Decisions about it"), table(["Time", "Request", "What became of it"], rows)];
}
