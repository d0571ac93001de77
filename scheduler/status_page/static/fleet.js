// The fleet as the daemon gave it: one array per column, indexed by the daemon's row numbers.

export class Fleet {
  constructor() {
    this.clear();
  }

  clear() {
    this.version = null;
    this.columns = {};
    this.rows = [];
    this.states = [];
    this.present = [];
    this.sortKeys = [];
  }

  /** Take in what the daemon says has changed; tells whether hosts came or went. */
  apply(changes) {
    if (changes.is_full) this.clear();
    this.version = changes.version;
    this.states = changes.states;
    const { row: rows, ...columns } = changes.columns;
    columns.membership = columns.membership.map((place) => changes.memberships[place]);
    columns.cell = columns.cell.map((place) => changes.cells[place]);
    let moved = changes.is_full;
    for (const row of changes.removed) {
      moved ||= this.present[row] === true;
      this.present[row] = false;
    }
    rows.forEach((row, at) => {
      if (!this.present[row] || this.columns.host[row] !== columns.host[at]) {
        moved = true;
        this.present[row] = true;
        this.sortKeys[row] = naturalKey(columns.host[at], columns.node[at]);
      }
    });
    for (const [name, values] of Object.entries(columns)) {
      const kept = this.columns[name] ??= [];
      rows.forEach((row, at) => { kept[row] = values[at]; });
    }
    if (moved) this.rows = this.#inOrder();
    return moved;
  }

  #inOrder() {
    const rows = [];
    this.present.forEach((isPresent, row) => { if (isPresent) rows.push(row); });
    const keys = this.sortKeys;
    return rows.sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0));
  }

  value(row, column) {
    return this.columns[column][row];
  }

  name(row) {
    const [host, node] = [this.value(row, "host"), this.value(row, "node")];
    return node === null ? host : `${host} (${node})`;
  }

  state(row) {
    return this.states[this.value(row, "state")];
  }

  membership(row) {
    return this.value(row, "membership");
  }

  cell(row) {
    return this.value(row, "cell");
  }

  perState() {
    const counts = new Map();
    for (const row of this.rows) counts.set(this.state(row), (counts.get(this.state(row)) ?? 0) + 1);
    return counts;
  }

  /** Groups of rows, by name: [{name, rows}]; hosts of two aggregates are in both. */
  groups(grouping, cellNames) {
    const namesOf = {
      nothing: () => [""],
      zone: (row) => this.membership(row).zones,
      aggregate: (row) => this.membership(row).aggregates,
      cell: (row) => [cellNames.get(this.cell(row)) ?? this.cell(row) ?? ""],
      state: (row) => [this.state(row)],
    }[grouping];
    const groups = new Map();
    for (const row of this.rows) {
      const names = namesOf(row);
      for (const name of names.length ? names : [NONE[grouping]]) {
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(row);
      }
    }
    const found = [...groups].map(([name, rows]) => ({ name, rows }));
    return found.sort((a, b) => (naturalKey(a.name) < naturalKey(b.name) ? -1 : 1));
  }
}

const NONE = { zone: "in no zone", aggregate: "in no aggregate" };

/** Sorts host2 before host10. */
function naturalKey(name, second = "") {
  return `${name} ${second ?? ""}`.replace(/\d+/g, (digits) => digits.padStart(12, "0"));
}
