// What is left of the fleet, what takes no servers, and what the daemon depends on.

import { cell, clock, count, element, hostLink, mebibytes, row, seconds, several, since } from "./text.js";

export const RESOURCES = {
  memory_mb: { label: "memory", text: mebibytes },
  vcpus: { label: "vCPUs", text: (amount) => count(Math.round(amount)) },
  disk_mb: { label: "disk", text: mebibytes },
};
const STATES = { pass: "● well", warn: "▲ warning", fail: "▲ fails" };
/** Checks of /readyz, and what they are about. */
const CHECKS = {
  workers: "Workers", answers: "Workers", stage: "Daemon", configuration: "Configuration", consumer: "Broker",
  state: "Database", snapshot: "Hosts read", cells: "Cells", claims: "Claims",
};
const ORDER = ["pass", "warn", "fail"];
const MUCH = 0.95;

/** A row whose cells have titles of their own where the window is narrow. */
function titled(titles, cells) {
  cells.forEach((each, at) => { if (titles[at]) each.dataset.title = titles[at]; });
  return row(cells);
}

/** "1.5" of a ratio that is not a whole number, "16" of one that is. */
const ratioText = (ratio) => String(Number(ratio.toFixed(2)));

/** "of 12 GiB", and what of it is overcommitted. */
export function capacityText(text, capacity, physical) {
  const ratio = ratioText(physical ? capacity / physical : 1);
  return ratio === "1" ? `of ${text(capacity)}` : `of ${text(capacity)} (${text(physical)} × ${ratio})`;
}

export function listTotals(body, totals) {
  const shown = totals.length === 2 ? totals.slice(1) : totals;
  body.replaceChildren(...shown.map((total) => titled(["", "Memory", "vCPUs", "Disk"], [
    element("th", { scope: "row" }, total.zone ?? "all zones", element("div", { className: "quiet" }, hostsText(total))),
    ...Object.entries(RESOURCES).map(([name, resource]) => amounts(resource, total[name])),
  ])));
}

function hostsText({ hosts, taking }) {
  return hosts === taking ? several(hosts, "host") : `${count(taking)} of ${several(hosts, "host")} take servers`;
}

function amounts({ label, text }, { physical, capacity, used, free }) {
  const share = capacity > 0 ? Math.min(1, Math.max(0, used / capacity)) : 0;
  const fill = element("span", { className: share >= MUCH ? "fill full" : "fill" });
  fill.style.width = `${(100 * share).toFixed(1)}%`;
  const gauge = element("span", { className: "gauge", role: "img", "aria-label": `${Math.round(100 * share)} % of ${label} used` }, fill);
  return element("td", {}, `${text(free)} free `, gauge,
    element("div", { className: "quiet" }, `${capacityText(text, capacity, physical)}, ${text(used)} used`));
}

/** Those of which the fewest fit come first. */
export function listFlavors(body, flavors) {
  const shown = flavors.filter(({ fits }) => fits !== null).sort((a, b) => a.fits - b.fits);
  body.replaceChildren(...shown.map((each) => {
    const zones = Object.entries(each.zones);
    const perZone = zones.length > 1 ? zones.map(([zone, fits]) => `${zone} ${count(fits)}`).join(", ") : "";
    const size = `${count(each.vcpus)} vCPUs, ${mebibytes(each.memory_mb)}, ${mebibytes(each.disk_mb)} disk`;
    return titled(["", "Fit", "Ends first", perZone && "By zone"], [
      element("td", {}, each.flavor, element("div", { className: "quiet" }, size)),
      element("td", { className: each.fits ? "number" : "number refused-text" }, count(each.fits)),
      cell(RESOURCES[each.ends_first]?.label ?? ""), cell(perZone, "quiet"),
    ]);
  }));
  return shown.length;
}

/** Hosts that take no servers, by name. */
export function listUnavailable(body, fleet, unavailable) {
  body.replaceChildren(...unavailable.filter(([at]) => fleet.present[at]).map(([at, time, reason]) => titled(["", "State", "Since", reason && "Reason given"], [
    element("td", {}, hostLink(fleet.value(at, "host")), fleet.value(at, "node") === null ? "" : ` ${fleet.value(at, "node")}`),
    cell(fleet.state(at), "refused-text"), cell(unavailableSince(fleet.state(at), time)), cell(reason ?? ""),
  ])));
}

export function unavailableSince(state, time) {
  if (time !== null) return since(time);
  return ["disabled", "forced down"].includes(state) ? "before this worker started" : "";
}

/** *ready* is what /readyz says, or null. */
export function listHealth(body, ready, worker, databaseError) {
  const worst = new Map();
  for (const { name, status, message } of ready?.checks ?? []) {
    const label = CHECKS[name] ?? name;
    if (ORDER.indexOf(status) > ORDER.indexOf(worst.get(label)?.status)) worst.set(label, { status, message });
  }
  const about = { Broker: worker?.broker, Database: worker?.database, Claims: worker && `claims = ${worker.claims}` };
  const rows = [...worst].map(([label, { status, message }]) => row([
    element("th", { scope: "row" }, label),
    element("td", { className: status === "pass" ? "well" : "refused-text" }, STATES[status]),
    element("td", {}, message, element("div", { className: "quiet" }, about[label] ?? "")),
  ]));
  if (databaseError) rows.push(row([element("th", { scope: "row" }, "Flavors, records"), cell(STATES.warn, "refused-text"), cell(databaseError)]));
  body.replaceChildren(...rows);
}

export function listSchedulers(body, schedulers, own) {
  body.replaceChildren(...schedulers.map((each) => {
    const seen = each.last_seen === null ? "no heartbeat yet" : `${seconds(Math.max(0, Date.now() / 1000 - each.last_seen))} ago, ${clock(each.last_seen)}`;
    const state = each.is_disabled ? "disabled" : each.is_up ? "● up" : "▲ down";
    return row([
      element("th", { scope: "row" }, each.host, each.host === own ? element("span", { className: "quiet" }, " (this one)") : ""),
      cell(state, each.is_up && !each.is_disabled ? "well" : "refused-text"), cell(seen),
    ]);
  }));
}
