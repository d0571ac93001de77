// Making elements and words.  What comes from outside becomes text, never markup.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "className") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function row(cells) {
  return element("tr", {}, ...cells);
}

export const cell = (text, className = "") => element("td", { className }, text);

export const count = (number) => number.toLocaleString("en");

export function seconds(amount) {
  if (amount === null) return "never";
  if (amount < 10) return `${amount.toFixed(1)} s`;
  if (amount < 120) return `${Math.round(amount)} s`;
  if (amount < 7200) return `${Math.round(amount / 60)} min`;
  if (amount >= 172800) return `${Math.round(amount / 86400)} days`;
  return `${(amount / 3600).toFixed(1)} h`;
}

/** "14:03, 2 h ago"; with the day if it was not today. */
export function since(epoch) {
  const then = new Date(epoch * 1000);
  const isToday = then.toDateString() === new Date().toDateString();
  const day = isToday ? "" : `${then.toLocaleDateString([], { dateStyle: "medium" })} `;
  return `${day}${clock(epoch)}, ${seconds(Math.max(0, Date.now() / 1000 - epoch))} ago`;
}

/** Permalinks: they work as long as the thing is known. */
export const permalink = (kind, name) => `#${kind}/${encodeURIComponent(name)}`;
export const hostLink = (name) => element("a", { href: permalink("host", name) }, name);

export function decisionLink({ key, request_id: request }) {
  const name = request ?? "(no request id)";
  return element("a", { href: permalink("decision", request ?? key), className: "link", title: name }, name);
}

export const clock = (epoch) => new Date(epoch * 1000).toLocaleTimeString([], { hour12: false });

export function mebibytes(amount) {
  const size = Math.abs(amount);
  if (size >= 1024 ** 3) return `${(amount / 1024 ** 3).toFixed(1)} PiB`;
  if (size >= 1024 * 1024) return `${(amount / 1024 / 1024).toFixed(1)} TiB`;
  if (size >= 1024) return `${(amount / 1024).toFixed(1)} GiB`;
  return `${Math.round(amount)} MiB`;
}

const plurals = { process: "processes" };
export const several = (number, word) =>
  `${count(number)} ${number === 1 ? word : plurals[word] ?? `${word}s`}`;
