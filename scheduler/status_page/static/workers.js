// What the workers tell, together: counts are added up, decisions are put in one list.

const MOST_DECISIONS = 300;
/** Changing the worker means to load the whole fleet again. */
const BEHIND_SECONDS = 5;

export class Workers {
  constructor() {
    this.all = [];
    this.seen = new Map();
    this.decisions = [];
  }

  /** Take in what each worker of one answer says; tells the decisions that are new. */
  apply(workers) {
    this.all = workers;
    const isThere = new Set(workers.filter((each) => !each.is_silent).map((each) => each.id));
    const isSilent = workers.some((each) => each.is_silent);
    const fresh = [];
    for (const { id, pid, decisions } of workers.filter((each) => !each.is_silent)) {
      this.seen.set(id, decisions.last);
      fresh.push(...decisions.new.map((each) => ({ ...each, key: `${id}.${each.number}`, pid })));
    }
    if (!isSilent) for (const id of [...this.seen.keys()]) if (!isThere.has(id)) this.seen.delete(id);
    if (fresh.length) {
      const all = [...fresh, ...this.decisions].sort((a, b) => b.started_at - a.started_at);
      this.decisions = all.slice(0, MOST_DECISIONS);
    }
    return fresh;
  }

  /** What the next question says has been shown already. */
  get seenText() {
    return [...this.seen].map(([id, last]) => `${id}.${last}`).join(",");
  }

  get answering() {
    return this.all.filter((each) => !each.is_silent);
  }

  /** The worker to show the fleet of: *pid*, unless another has read it much later. */
  freshest(pid) {
    const known = this.answering.filter((each) => each.state_age_seconds !== null);
    const shown = known.find((each) => each.pid === pid);
    const best = known.reduce((one, other) => (other.state_age_seconds < one.state_age_seconds ? other : one), known[0]);
    const isBehind = !shown || shown.state_age_seconds - best.state_age_seconds > BEHIND_SECONDS;
    return best && isBehind ? best.pid : pid;
  }

  get outcomes() {
    return added(this.answering.map((each) => each.outcomes));
  }

  /** Decisions by bucket of time. */
  get times() {
    return added(this.answering.map((each) => each.times));
  }

  /** Servers placed and refused, and races lost, in a window: "hour" or "day". */
  servers(window_) {
    return { placed: 0, refused: 0, races_lost: 0, ...added(this.answering.map((each) => each.servers[window_])) };
  }

  /** Reservations: those in a database are everybody's, all others each worker's own. */
  get reservations() {
    const counts = this.answering.map((each) => each.reservations);
    return this.answering[0]?.claims === "database" ? Math.max(0, ...counts) : counts.reduce((sum, each) => sum + each, 0);
  }

  /** Per filter and reason, those that refused the most requests first. */
  get reasons() {
    const found = new Map();
    for (const reason of this.answering.flatMap((each) => each.reasons)) {
      const { filter, reason: code, ...numbers } = reason;
      const key = JSON.stringify([filter, code]);
      const before = found.get(key)?.numbers;
      found.set(key, { filter, code, numbers: before ? added([before, numbers]) : numbers });
    }
    return [...found.values()].sort((a, b) =>
      b.numbers.refused_requests - a.numbers.refused_requests || b.numbers.hosts - a.numbers.hosts);
  }

  /** Decisions per step, oldest first: {selected, refused}. */
  get rate() {
    const steps = [];
    if (!this.answering.length) return { seconds: 1, steps };
    const seconds = this.answering[0].rate.step_seconds;
    const ends = this.answering.map((each) => Math.floor(each.rate.ends_at / seconds));
    const last = Math.max(...ends);
    const length = this.answering[0].rate.selected.length;
    for (let step = last - length + 1; step <= last; step += 1) {
      const sum = { selected: 0, refused: 0 };
      this.answering.forEach(({ rate }, at) => {
        const place = length - 1 - (ends[at] - step);
        sum.selected += rate.selected[place] ?? 0;
        sum.refused += rate.refused[place] ?? 0;
      });
      steps.push(sum);
    }
    return { seconds, steps };
  }

  /** Every cell once, by uuid; left out if any worker leaves it out. */
  get cells() {
    const found = new Map();
    for (const cell of this.answering.flatMap((each) => each.cells)) {
      if (!found.get(cell.uuid)?.is_left_out) found.set(cell.uuid, cell);
    }
    return found;
  }
}

function added(several) {
  const sum = {};
  for (const each of several) {
    for (const [name, number] of Object.entries(each)) sum[name] = (sum[name] ?? 0) + number;
  }
  return sum;
}
