// The heat map: one square per host on a canvas, a tooltip, and a cursor for the keyboard.

import { element, several } from "./text.js";
import { METRICS } from "./metrics.js";

const SMALLEST = 5;
const LARGEST = 26;
const HEADER = 22;
const GAP = 12;
/** What a group needs for its title. */
const NARROWEST = 170;
/** A group so many times as large as the others are on average has the whole width. */
const WIDE = 3;
/** More groups than this are drawn as one, the smallest of them: a canvas cannot be endless. */
const MOST_GROUPS = 60;
const STEPS = 7;
/** So many hosts at most are shown with their names, in places of this width. */
const MOST_NAMED = 60;
const NAMED = 190;
const TALL = 34;
/** The cursor stays this far from the window's edges. */
const MARGIN = 80;

export class HeatMap {
  /** *describe* gives what the tooltip says of a row as [[name, text]]; *spoken* hears of moves. */
  constructor(canvas, tip, legend, describe, spoken, open) {
    Object.assign(this, { canvas, tip, legend, describe, spoken, open });
    this.metric = "memory";
    this.groups = [];
    this.places = [];
    this.matches = null;
    this.cursor = null;
    this.pointed = null;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerdown", (event) => this.#point(event));
    canvas.addEventListener("click", (event) => this.#open(this.#under(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => this.#show(null));
    canvas.addEventListener("keydown", (event) => this.#move(event));
    canvas.addEventListener("blur", () => { this.cursor = null; this.#show(null); this.draw(); });
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Show *groups* of *fleet*; *matches* is a Set of the rows to bring out, or null for all. */
  show(fleet, groups, metric, matches) {
    Object.assign(this, { fleet, metric, matches });
    this.groups = fewer(groups);
    this.scale = METRICS[metric].prepare(fleet);
    this.draw();
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!this.fleet || !width) return;
    const height = this.#place(width);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const brush = this.canvas.getContext("2d");
    brush.scale(ratio, ratio);
    const colours = this.#colours();
    this.#headers(brush, colours);
    this.#squares(brush, colours);
    this.#drawCursor(brush, colours);
    this.#drawLegend(colours);
    if (this.pointed !== null) this.#show(this.pointed);
  }

  /** Choose the size of the squares, and lay out the groups in shelves; returns the height. */
  #place(width) {
    const rows = this.groups.reduce((sum, group) => sum + group.rows.length, 0);
    const roomy = Math.max(420, window.innerHeight * 0.6);
    const ideal = Math.floor(Math.sqrt((width * roomy) / Math.max(rows, 1)));
    this.size = Math.max(SMALLEST, Math.min(LARGEST, ideal));
    this.isNamed = rows <= MOST_NAMED;
    [this.wide, this.tall] = this.isNamed ? [NAMED, TALL] : [this.size, this.size];
    const isTitled = this.groups.length > 1 || Boolean(this.groups[0]?.name);
    const square = this.isNamed ? NAMED + GAP : Math.sqrt(rows / Math.max(this.groups.length, 1)) * this.size * 1.5;
    const shelves = Math.max(1, Math.min(this.groups.length, Math.floor(width / Math.max(NARROWEST, square))));
    const isWide = (group) => group.rows.length > (WIDE * rows) / this.groups.length;
    let [top, bottom, column] = [0, 0, 0];
    this.places = this.groups.map((group) => {
      const takes = shelves > 1 && !isWide(group) ? 1 : shelves;
      const room = Math.floor((width * takes) / shelves);
      if (column + takes > shelves) column = 0;
      if (column === 0) top = bottom;
      const across = Math.max(1, Math.floor((takes < shelves ? room - GAP : width) / this.wide));
      const begin = top + (isTitled ? HEADER : 0);
      const end = begin + Math.ceil(group.rows.length / across) * this.tall;
      const left = Math.floor((width * column) / shelves);
      bottom = Math.max(bottom, end + (isTitled ? GAP : 0));
      column += takes;
      return { ...group, left, begin, end, across, room, isTitled };
    });
    return Math.max(bottom, SMALLEST);
  }

  #colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const steps = (name) => Array.from({ length: STEPS }, (_, at) => of(`--${name}-${at}`));
    const scale = steps("step");
    scale[STEPS - 1] = of("--full");
    return {
      steps: METRICS[this.metric].isState ? steps("state") : scale,
      text: of("--text"), quiet: of("--quiet"), hollow: of("--hollow"), cursor: of("--cursor"),
    };
  }

  #headers(brush, colours) {
    brush.font = "600 13px system-ui, 'DejaVu Sans', sans-serif";
    brush.textBaseline = "middle";
    for (const place of this.places.filter((each) => each.isTitled)) {
      const note = several(place.rows.length, "host");
      const name = shortened(brush, place.name, place.room - brush.measureText(note).width - 2 * GAP);
      brush.fillStyle = colours.text;
      brush.fillText(name, place.left, place.begin - HEADER / 2);
      brush.fillStyle = colours.quiet;
      brush.fillText(note, place.left + brush.measureText(name).width + GAP, place.begin - HEADER / 2);
    }
  }

  /** All squares of one look at a time. */
  #squares(brush, colours) {
    const metric = METRICS[this.metric];
    const looks = new Map();
    for (const { rows, left, begin, across } of this.places) {
      rows.forEach((row, at) => {
        const isUp = this.fleet.value(row, "state") === 0;
        const step = metric.step(this.fleet, row, this.scale);
        const isHollow = !metric.isState && !isUp;
        const isDim = this.matches !== null && !this.matches.has(row);
        const look = `${step}|${isHollow}|${isDim}|${metric.isState && !isUp}`;
        if (!looks.has(look)) looks.set(look, { step, isHollow, isDim, isMarked: metric.isState && !isUp, at: [] });
        looks.get(look).at.push([left + (at % across) * this.wide, begin + Math.floor(at / across) * this.tall]);
      });
    }
    for (const { at, ...look } of looks.values()) {
      brush.globalAlpha = look.isDim ? 0.13 : 1;
      paint(brush, at, this.size - (this.size > 8 ? 2 : 1), look, colours);
    }
    brush.globalAlpha = 1;
    if (this.isNamed) this.#names(brush, colours, metric);
  }

  /** Name and number of each host beside its square. */
  #names(brush, colours, metric) {
    const room = NAMED - this.size - GAP;
    for (const { rows, left, begin, across } of this.places) {
      rows.forEach((row, at) => {
        const x = left + (at % across) * this.wide + this.size + 4;
        const y = begin + Math.floor(at / across) * this.tall;
        brush.globalAlpha = this.matches !== null && !this.matches.has(row) ? 0.3 : 1;
        brush.font = "600 13px system-ui, 'DejaVu Sans', sans-serif";
        brush.fillStyle = colours.text;
        brush.fillText(shortened(brush, this.fleet.name(row), room), x, y + 7);
        brush.font = "12px system-ui, 'DejaVu Sans', sans-serif";
        brush.fillStyle = colours.quiet;
        const isUp = this.fleet.value(row, "state") === 0;
        brush.fillText(shortened(brush, isUp ? (metric.short ?? metric.text)(this.fleet, row) : this.fleet.state(row), room), x, y + 21);
      });
    }
    brush.globalAlpha = 1;
  }

  #drawCursor(brush, colours) {
    const spot = this.cursor === null ? null : this.#spot(this.cursor);
    if (!spot) return;
    brush.strokeStyle = colours.cursor;
    brush.lineWidth = 2;
    brush.strokeRect(spot.x - 1, spot.y - 1, this.size + 1, this.size + 1);
  }

  #drawLegend(colours) {
    const metric = METRICS[this.metric];
    const isUsed = new Set();
    for (const row of this.fleet.rows) isUsed.add(metric.step(this.fleet, row, this.scale));
    const looks = this.scale.labels.map((label, step) => (
      { label, step, isMarked: Boolean(metric.isState) && step > 0, isShown: !metric.isState || isUsed.has(step) }
    ));
    if (!metric.isState) looks.push({ label: "takes no servers", isHollow: true, step: 0, isShown: true });
    const key = JSON.stringify([this.metric, looks, colours, devicePixelRatio]);
    if (key === this.legendKey) return;
    this.legendKey = key;
    const title = metric.isState || !this.scale.width ? [] : [element("li", { className: "quiet" }, `${metric.label}:`)];
    const used = !metric.isState && !this.scale.width ? [element("li", { className: "quiet" }, `${metric.label} taken:`)] : [];
    this.legend.replaceChildren(...title, ...used, ...looks.filter((each) => each.isShown).map((look) => {
      const sample = element("canvas", { width: 28, height: 28, "aria-hidden": "true" });
      const brush = sample.getContext("2d");
      brush.scale(2, 2);
      paint(brush, [[1, 1]], 12, look, colours);
      return element("li", {}, sample, look.label);
    }));
  }

  // --- pointing ------------------------------------------------------------------------

  /** The place of a square: {group, at}, or null. */
  #under(x, y) {
    const group = this.places.findIndex(
      (each) => y >= each.begin && y < each.end && x >= each.left && x < each.left + each.across * this.wide,
    );
    if (group < 0) return null;
    const { rows, left, begin, across } = this.places[group];
    const at = Math.floor((y - begin) / this.tall) * across + Math.floor((x - left) / this.wide);
    return at < rows.length ? { group, at } : null;
  }

  #spot({ group, at }) {
    const place = this.places[group];
    if (!place || at >= place.rows.length) return null;
    return {
      row: place.rows[at],
      x: place.left + (at % place.across) * this.wide,
      y: place.begin + Math.floor(at / place.across) * this.tall,
    };
  }

  #point(event) {
    this.#show(this.#under(event.offsetX, event.offsetY));
  }

  #open(where) {
    const spot = where && this.#spot(where);
    if (spot) this.open(spot.row);
  }

  #show(where) {
    const spot = where && this.#spot(where);
    this.pointed = spot ? where : null;
    this.tip.hidden = !spot;
    if (!spot) return;
    const facts = this.describe(spot.row).flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]);
    this.tip.replaceChildren(element("strong", {}, this.fleet.name(spot.row)), element("dl", {}, ...facts));
    const box = this.canvas.parentElement;
    const left = Math.max(0, Math.min(spot.x + this.size + 6, box.clientWidth - this.tip.offsetWidth));
    const isBelow = this.canvas.getBoundingClientRect().top + spot.y + this.size + this.tip.offsetHeight + 12 < window.innerHeight;
    const top = isBelow || spot.y < this.tip.offsetHeight + 6 ? spot.y + this.size + 6 : spot.y - this.tip.offsetHeight - 6;
    this.tip.style.transform = `translate(${left}px, ${top}px)`;
  }

  // --- keyboard ------------------------------------------------------------------------

  #move(event) {
    const across = this.places[this.cursor?.group ?? 0]?.across;
    const steps = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across,
      PageDown: across * 10, PageUp: -across * 10, Home: -Infinity, End: Infinity,
    };
    if (event.key === "Escape") { this.cursor = null; this.#show(null); this.draw(); return; }
    if (event.key === "Enter") { this.#open(this.cursor); return; }
    if (!(event.key in steps) || !this.places.length) return;
    event.preventDefault();
    this.#goTo(this.cursor ? this.#stepped(steps[event.key]) : { group: 0, at: 0 });
  }

  #stepped(step) {
    let { group, at } = this.cursor;
    const last = this.places.length - 1;
    if (step === -Infinity) return { group: 0, at: 0 };
    if (step === Infinity) return { group: last, at: this.places[last].rows.length - 1 };
    at += step;
    while (at < 0 && group > 0) { group -= 1; at += this.places[group].rows.length; }
    while (group < last && at >= this.places[group].rows.length) { at -= this.places[group].rows.length; group += 1; }
    return { group, at: Math.max(0, Math.min(at, this.places[group].rows.length - 1)) };
  }

  #goTo(where) {
    this.cursor = where;
    const spot = this.#spot(where);
    if (!spot) return;
    this.#bringIntoView(spot);
    this.draw();
    this.#show(where);
    const facts = this.describe(spot.row).map(([name, text]) => `${name} ${text}`);
    this.spoken.textContent = [this.fleet.name(spot.row), ...facts].join(", ");
  }

  #bringIntoView({ y }) {
    const inWindow = this.canvas.getBoundingClientRect().top + y;
    if (inWindow < MARGIN || inWindow > window.innerHeight - MARGIN) {
      window.scrollBy(0, inWindow - window.innerHeight / 2);
    }
  }

  /** Put the cursor on the first square of *row*. */
  goToRow(row) {
    const group = this.places.findIndex((each) => each.rows.includes(row));
    if (group >= 0) { this.canvas.focus({ preventScroll: true }); this.#goTo({ group, at: this.places[group].rows.indexOf(row) }); }
  }
}

function fewer(groups) {
  if (groups.length <= MOST_GROUPS) return groups;
  const bySize = [...groups].sort((a, b) => b.rows.length - a.rows.length);
  const shown = new Set(bySize.slice(0, MOST_GROUPS - 1));
  const others = groups.filter((group) => !shown.has(group));
  const rows = [...new Set(others.flatMap((group) => group.rows))];
  return [...groups.filter((group) => shown.has(group)), { name: `${others.length} smaller groups`, rows }];
}

function shortened(brush, text, room) {
  if (brush.measureText(text).width <= room) return text;
  let end = Math.min(text.length, 200);
  while (end > 1 && brush.measureText(`${text.slice(0, end)}…`).width > room) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** Squares of one look; what colour shows is also shown by form where it matters. */
function paint(brush, places, side, { step, isHollow, isMarked }, colours) {
  brush.beginPath();
  if (isHollow) {
    for (const [x, y] of places) brush.rect(x + 0.5, y + 0.5, side - 1, side - 1);
    brush.strokeStyle = colours.hollow;
    brush.lineWidth = 1;
    brush.stroke();
    return;
  }
  for (const [x, y] of places) brush.rect(x, y, side, side);
  brush.fillStyle = colours.steps[step];
  brush.fill();
  if (!isMarked || side < 4) return;
  brush.beginPath();
  for (const [x, y] of places) { brush.moveTo(x, y + side); brush.lineTo(x + side, y); }
  brush.strokeStyle = colours.text;
  brush.lineWidth = 1;
  brush.stroke();
}
