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
  return `${(amount / 3600).toFixed(1)} h`;
}

export const clock = (epoch) => new Date(epoch * 1000).toLocaleTimeString([], { hour12: false });

export function mebibytes(amount) {
  const size = Math.abs(amount);
  if (size >= 1024 * 1024) return `${(amount / 1024 / 1024).toFixed(1)} TiB`;
  if (size >= 1024) return `${(amount / 1024).toFixed(1)} GiB`;
  return `${Math.round(amount)} MiB`;
}

const plurals = { process: "processes" };
export const several = (number, word) =>
  `${count(number)} ${number === 1 ? word : plurals[word] ?? `${word}s`}`;
