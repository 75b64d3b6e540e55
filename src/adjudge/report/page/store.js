// Samples as the page holds them: columns that are unpacked, read, searched and put into words.
const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const badge = (word) => make("span", { class: `badge ${String(word).toLowerCase()}` }, String(word));

// What a script element holds as gzip in base64; null where there is none, or this browser cannot unpack it.
const unpack = async (id) => {
  const store = document.getElementById(id);
  if (!store) return null;
  try {
    const text = atob(store.textContent.trim()), bytes = new Uint8Array(text.length);
    for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  } catch {
    return null;
  }
};

// Numbers and messages as `explain` writes them.
const digits = (value) => {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  if (exponent >= 6) return Math.abs(value) < 1e15 ? value.toFixed(0) : value.toExponential(5);
  const text = exponent < -4 ? value.toExponential(5) : value.toPrecision(6);
  return text.includes(".") ? text.replace(/\.?0+(e|$)/, "$1") : text;
};
const format = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? digits(value) : String(value));

const SEVERITIES = ["INFO", "WARNING", "CRITICAL"];
const BADNESS = { failed: 3, errored: 1, passed: 0 };

class Samples {
  constructor(data) {
    this.data = data;
    this.n = data.n;
    this.columns = data.columns;
    this.positions = data.rules.flatMap((rule) => rule.slots.map((slot) => ({ rule, slot })));
    this.failed = Array.from({ length: this.n }, () => []);
    data.failed.forEach((atoms, position) => atoms.s.forEach((row, index) => this.failed[row].push({
      position, code: data.codes[atoms.c[index]], severity: SEVERITIES[atoms.e[index]], observed: atoms.o[index],
      why: atoms.w[index] < 0 ? null : data.reasons[atoms.w[index]],
    })));
    for (const atoms of this.failed) atoms.sort((a, b) => (b.severity === "CRITICAL") - (a.severity === "CRITICAL") || a.position - b.position);
    this.haystack = Array(this.n);
  }

  at(name, row) {
    const column = this.columns[name];
    if (!column) return null;
    if (column.words) return column.codes[row] < 0 ? null : column.words[column.codes[row]];
    return column.values[row];
  }

  // Whether any sample has a value there.
  has(name) {
    const column = this.columns[name];
    return Boolean(column) && (column.words ? column.words.length > 0 : (column.some ??= column.values.some((value) => value !== null)));
  }

  // Every word of a column, sorted; nothing where it holds something else.
  words(name) {
    const column = this.columns[name];
    return column && column.words ? [...column.words].sort() : [];
  }

  // Columns of numbers.
  scores() {
    return Object.keys(this.columns).filter((name) => {
      const { values } = this.columns[name];
      return values && values.some((value) => typeof value === "number") && !values.some((value) => Array.isArray(value) || typeof value === "string");
    }).slice(0, 24);
  }

  // The number or two that a table shows of a sample.
  shownScores() {
    const scores = this.scores();
    const preferred = ["total", "score", "rubric", "mean_score", "confidence", "distance", "css"].filter((name) => scores.includes(name)).slice(0, 2);
    return preferred.length ? preferred : scores.slice(0, 1);
  }

  worst(row) {
    return this.failed[row].length ? this.failed[row][0].code : "";
  }

  // How bad a sample is: a wrong answer before none, a broken instrument after both; then the gravest rule, the number of
  // critical and of other failures, and how far the worst lies beyond its limit.
  rank(row) {
    const failed = this.failed[row], gravest = this.data.gravest || [];
    const gravity = Math.max(0, ...failed.map(({ code }) => (gravest.includes(code) ? gravest.length - gravest.indexOf(code) : 0)));
    const count = failed.reduce((sum, atom) => sum + (atom.severity === "CRITICAL" ? 1000 : 1), 0);
    return (BADNESS[this.at("bucket", row)] ?? 2) * 1e9 + gravity * 1e7 + count + Math.max(0, ...failed.map((atom) => this.beyond(atom)));
  }

  // How far a value lies beyond its limit, from 0 to less than 1.
  beyond({ position, observed }) {
    const { low, high } = this.positions[position].slot;
    if (typeof observed !== "number") return 0;
    const by = Math.max(typeof high === "number" ? (observed - high) / (Math.abs(high) || 1) : 0, typeof low === "number" ? (low - observed) / (Math.abs(low) || 1) : 0);
    return by > 0 ? by / (by + 1) : 0;
  }

  // The beginning of what a model said, on one line.
  said(row) {
    const response = this.at("response", row) ?? (this.at("claims", row) || [])[0];
    return typeof response === "string" && response.trim() ? response.trim().replace(/\s+/g, " ").slice(0, 160) : "no answer";
  }

  // What is searched.
  text(row) {
    return (this.haystack[row] ??= `${this.at("sample", row)}\n${this.at("model", row)}\n${this.at("response", row) ?? ""}`.toLowerCase());
  }

  message(atom, outcome) {
    const { rule, slot } = this.positions[atom.position];
    if (outcome === "n") return atom.why ? `not applicable: ${atom.why}` : "not applicable";
    if (outcome === "e") return atom.why || "the rule failed";
    const chosen = (rule.cases || []).find((each) => each.when === atom.why);
    const variant = rule.variants.find((each) => each.code === atom.code) || rule;
    const template = outcome === "p" ? (chosen || rule).passed : (chosen || variant).failed;
    const values = { ...slot, ...(chosen || {}), field: slot.field || "the sample", observed: atom.observed, why: atom.why || "" };
    return String(template).replace(/\{(\w+)\}/g, (_, key) => {
      const value = values[key];
      return value === undefined || value === null ? "n/a" : typeof value === "number" && key !== "step" ? digits(value) : String(value);
    });
  }
}

// Do something for every row while nobody waits, a few milliseconds at a time.
const whenIdle = (n, work) => {
  let row = 0;
  const turn = (deadline) => {
    while (row < n && deadline.timeRemaining() > 1) for (const end = Math.min(n, row + 50); row < end; row += 1) work(row);
    if (row < n) requestIdleCallback(turn);
  };
  if (globalThis.requestIdleCallback) requestIdleCallback(turn);
};
