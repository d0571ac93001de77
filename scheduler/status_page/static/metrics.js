// What the squares of the heat map can show, and how: a step of the scale per host.

import { mebibytes } from "./text.js";
import { capacityText } from "./panels.js";

const SHARES = [0.2, 0.4, 0.6, 0.8, 0.95];
const SHARE_LABELS = ["under 20 %", "20–40 %", "40–60 %", "60–80 %", "80–95 %", "95–100 %"];
/** The step after the last of the scale. */
export const FULL = 6;

const wholes = (amount) => (Number.isInteger(amount) ? String(amount) : amount.toFixed(1));

/** A resource, of which there is as much as overcommitment makes of it. */
function resource(label, total, taken, ratio, text) {
  const limit = (fleet, row) => total(fleet, row) * fleet.value(row, ratio);
  return {
    label,
    prepare: () => ({ labels: [...SHARE_LABELS, "nothing free"] }),
    step: (fleet, row) => {
      const most = limit(fleet, row);
      const used = taken(fleet, row);
      if (used >= most) return FULL;
      const at = SHARES.findIndex((bound) => used / most < bound);
      return at < 0 ? SHARES.length : at;
    },
    text: (fleet, row) => {
      const most = limit(fleet, row);
      return `${text(most - taken(fleet, row))} free ${capacityText(text, most, total(fleet, row))}`;
    },
    short: (fleet, row) => `${text(limit(fleet, row) - taken(fleet, row))} free`,
  };
}

/** A count, on a scale that ends at the largest in the fleet. */
function counted(label, column) {
  return {
    label,
    prepare: (fleet) => {
      const largest = fleet.rows.reduce((most, row) => Math.max(most, fleet.value(row, column)), 1);
      const width = Math.max(1, Math.ceil((largest + 1) / FULL));
      const labels = [];
      for (let from = 0; from <= largest; from += width) {
        const last = from + width - 1;
        labels.push(last === from ? String(from) : `${from}–${last}`);
      }
      return { width, labels };
    },
    step: (fleet, row, { width }) =>
      Math.min(FULL - 1, Math.max(0, Math.floor(fleet.value(row, column) / width))),
    text: (fleet, row) => String(fleet.value(row, column)),
  };
}

const column = (name) => (fleet, row) => fleet.value(row, name);
const megabytes = (name) => (fleet, row) => fleet.value(row, name) * 1024;
const rest = (total, free) => (fleet, row) => total(fleet, row) - fleet.value(row, free);

const ram = column("total_usable_ram_mb");
const disk = megabytes("total_usable_disk_gb");

export const METRICS = {
  memory: resource("Memory", ram, rest(ram, "free_ram_mb"), "ram_allocation_ratio", mebibytes),
  vcpus: resource("vCPUs", column("vcpus_total"), column("vcpus_used"), "cpu_allocation_ratio", wholes),
  disk: resource("Disk", disk, rest(disk, "free_disk_mb"), "disk_allocation_ratio", mebibytes),
  instances: counted("Instances", "num_instances"),
  builds: counted("Builds in progress", "num_io_ops"),
  failures: counted("Failed builds", "failed_builds"),
  state: {
    label: "State",
    isState: true,
    prepare: (fleet) => ({ labels: fleet.states }),
    step: (fleet, row) => fleet.value(row, "state"),
    text: (fleet, row) => fleet.state(row),
  },
};

export const GROUPINGS = {
  nothing: "nothing",
  zone: "availability zone",
  aggregate: "aggregate",
  cell: "cell",
  state: "state",
};
