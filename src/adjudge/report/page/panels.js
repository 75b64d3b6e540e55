// Parts of an opened sample that a protocol declares. The page draws kinds and knows no protocol.
const shape = (name, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const isEmpty = (value) => value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
const plain = (value) => (value === true ? "yes" : value === false ? "no" : Array.isArray(value) ? value.map(plain).join(", ")
  : value !== null && typeof value === "object" ? Object.entries(value).map(([name, item]) => `${name} ${plain(item)}`).join(", ") : format(value));
const labelled = (samples, row, columns) => Object.entries(columns).map(([label, name]) => [label, samples.at(name, row)]);

const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, value)]));

const pairsPanel = (samples, row, { columns }) => {
  const pairs = labelled(samples, row, columns).filter(([, value]) => !isEmpty(value));
  return pairs.length ? facts(pairs.map(([label, value]) => [label, /^[a-z]+(_[a-z]+)+$/.test(value) ? value.replaceAll("_", " ") : plain(value)])) : null;
};

const textsPanel = (samples, row, { columns, options }) => {
  const badges = options.badges || {};
  const every = labelled(samples, row, columns), holds = ([label, value]) => !isEmpty(value) || !isEmpty(samples.at(badges[label], row));
  const texts = options.always ? every : every.filter(holds);
  if (!every.some(holds)) return null;
  const several = Object.keys(columns).length > 1;
  return make("div", { class: "beside" }, ...texts.map(([label, value]) => {
    const word = samples.at(badges[label], row);
    const body = Array.isArray(value) ? make("ol", { class: "said" }, ...value.map((item) => make("li", {}, plain(item))))
      : isEmpty(value) ? make("p", { class: "note" }, "no text") : make("pre", {}, plain(value));
    return make("div", {}, several ? make("h5", {}, `${label} `, isEmpty(word) ? null : badge(word)) : null, body);
  }));
};

// The checks about one field and step: a word each, the failed ones first.
const isAbout = ({ rule, slot }, field, step, options) => (slot.field === field && slot.step === step) || (slot.field === null && ((options.about || {})[rule.code] || []).includes(field));
const checksOf = (samples, row, field, step, options) => {
  const failed = samples.failed[row].filter((atom) => isAbout(samples.positions[atom.position], field, step, options));
  const chip = (word, code, title) => make("span", { class: "chip", title }, badge(word), ` ${code.replace(/^[^.]*\./, "").replaceAll("_", " ")}`);
  const chips = failed.map((atom) => chip(atom.severity, atom.code, samples.message(atom, "f")));
  const others = samples.positions.map((each, position) => ({ ...each, outcome: samples.data.outcomes[position][row] }))
    .filter((each) => each.outcome !== "f" && isAbout(each, field, step, options));
  if (options.checks === "all") {
    for (const [outcome, word] of [["p", "pass"], ["e", "broke"], ["n", "not applicable"]]) {
      const names = others.filter((each) => each.outcome === outcome).map(({ rule }) => rule.code.replace(/^[^.]*\./, "").replaceAll("_", " "));
      if (names.length) chips.push(make("span", { class: "note" }, `${word}: ${names.join(", ")}`));
    }
  } else if (!chips.length) chips.push(make("span", { class: "note" }, others.some(({ outcome }) => outcome === "p") ? "pass" : "not checked"));
  return chips.flatMap((each) => [each, " "]);
};

const tablePanel = (samples, row, { columns, options }) => {
  const size = options.rows.length, given = ([, column]) => !column.includes("{}") || options.rows.some((field) => samples.has(column.replace("{}", field)));
  const names = Object.entries(columns).filter(given);
  const isList = (column) => !column.includes("{}");
  const lists = names.map(([, column]) => (isList(column) ? samples.at(column, row) : null));
  const cell = (place, index, step) => {
    const column = names[place][1], list = lists[place];
    if (!isList(column)) return samples.at(column.replace("{}", options.rows[index]), row);
    return Array.isArray(list) ? list[list.length > size ? step * size + index : index] : null;
  };
  const steps = Math.max(1, ...lists.map((list) => (Array.isArray(list) ? Math.round(list.length / size) : 1)));
  const [predicted, truth] = (options.error || []).map((label) => names.findIndex(([name]) => name === label));
  const limits = new Map(samples.positions.filter(({ rule }) => rule.family === options.limit).map(({ slot }) => [`${slot.field}@${slot.step}`, slot.high]));
  const around = new Set(options.angles || []), checked = samples.positions.some((each) => options.rows.some((field) => isAbout(each, field, each.slot.step, options)));
  const lines = [];
  let filled = false;
  for (let step = 0; step < steps; step += 1) {
    options.rows.forEach((field, index) => {
      const values = names.map((_, place) => cell(place, index, step));
      filled ||= values.some((value) => !isEmpty(value));
      const cells = values.map((value, place) => make("td", { "data-label": names[place][0], class: typeof value === "number" || /^\d{4}-\d\d-\d\d/.test(value) ? "num" : "" },
        ...(Array.isArray(value) && typeof value[0] === "object" ? value.map((item) => make("div", {}, plain(item))) : [plain(value)])));
      if (options.error) {
        let apart = typeof values[predicted] === "number" && typeof values[truth] === "number" ? Math.abs(values[predicted] - values[truth]) : null;
        if (apart !== null && around.has(field)) apart = Math.min(apart % 360, 360 - (apart % 360));
        cells.push(make("td", { class: "num", "data-label": "error" }, apart === null ? "–" : digits(Number(apart.toPrecision(4)))));
      }
      if (options.limit) cells.push(make("td", { class: "num", "data-label": options.limit_title || "limit" }, format(limits.get(`${field}@${step}`))));
      const wrong = samples.failed[row].some((atom) => isAbout(samples.positions[atom.position], field, step, options));
      if (options.filled && !wrong && values.every(isEmpty)) return;
      const checks = checksOf(samples, row, field, step, options);
      lines.push(make("tr", { class: wrong ? "wrong" : "" }, make("th", { scope: "row" }, steps > 1 ? `${field}, t + ${step + 1}` : field), ...cells, checked ? make("td", { class: "checks" }, ...checks) : null));
    });
  }
  if (!filled) return null;
  const numeric = { class: options.error ? "num" : "" };
  const head = make("tr", {}, make("th", {}, options.head || ""), ...names.map(([label]) => make("th", numeric, label)),
    options.error ? make("th", { class: "num" }, "error") : null, options.limit ? make("th", { class: "num" }, options.limit_title || "limit") : null, checked ? make("th", {}, "checks") : null);
  return make("div", { class: "scroll" }, make("table", { class: "fields" }, make("thead", {}, head), make("tbody", {}, ...lines)));
};

// Pictures stand in the page once, by the name that records give them.
const pictureOf = (() => {
  let known = null;
  return (name) => {
    const store = document.getElementById("pictures-data");
    known ??= store ? JSON.parse(store.textContent) : {};
    return Object.hasOwn(known, name) && known[name].startsWith("data:image/") ? known[name] : null;
  };
})();
const NOT_HERE = "is not in this page: beside the input there was no such picture, or it is too large for a page";

const picturePanel = (samples, row, { columns }) => {
  const names = labelled(samples, row, columns).map(([, value]) => value).filter((value) => typeof value === "string" && value);
  if (!names.length) return null;
  return make("div", {}, ...names.map((name) => {
    const source = pictureOf(name);
    return source ? make("img", { class: "sample", alt: name, src: source }) : make("p", { class: "note" }, make("code", {}, name), ` ${NOT_HERE}.`);
  }));
};

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const MARKS = {
  ring: (x, y, r) => shape("circle", { cx: x, cy: y, r, "stroke-width": r / 2.2 }),
  cross: (x, y, r) => shape("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`, "stroke-width": r / 1.8 }),
};
const legend = (entries) => make("p", { class: "note marks" }, ...entries.map(([mark, kind, label]) => {
  const drawn = mark === "box" ? shape("rect", { x: 2, y: 3, width: 12, height: 10, "stroke-width": 1.5 }) : mark === "line" ? shape("path", { d: "M1 8H15", "stroke-width": 2 }) : MARKS[mark](8, 8, 5);
  drawn.setAttribute("class", kind);
  return make("span", {}, shape("svg", { viewBox: "0 0 16 16", width: 14, height: 14, class: "mark", "aria-hidden": "true" }, drawn), ` ${label} `);
}));

const drawingPanel = (samples, row, { columns, options, title }) => {
  const boxes = (options.boxes || []).map((each) => ({ ...each, list: samples.at(each.column, row) })).filter(({ list }) => Array.isArray(list) && list.length >= 4 && list.every(isNumber));
  const points = (options.points || []).map((each) => {
    const list = each.column ? samples.at(each.column, row) : [samples.at(each.x, row), samples.at(each.y, row)];
    return { ...each, x: Array.isArray(list) ? list[0] : null, y: Array.isArray(list) ? list[1] : null };
  }).filter(({ x, y }) => isNumber(x) && isNumber(y));
  if (!boxes.length && !points.length) return null;
  const listed = options.screen ? samples.at(options.screen, row) : null;
  const screen = Array.isArray(listed) ? listed : (options.size || []).map((name) => samples.at(name, row));
  const known = screen.length === 2 && screen.every((value) => isNumber(value) && value > 0);
  const reach = (place) => Math.max(...boxes.flatMap(({ list }) => list.filter((_, index) => index % 2 === place)), ...points.map((point) => (place ? point.y : point.x)), 1);
  const extent = options.extent || (known ? screen : [reach(0), reach(1)]);
  const wide = 1000, high = wide * Math.min(2.2, Math.max(0.3, known ? screen[1] / screen[0] : options.extent ? 0.6 : extent[1] / extent[0]));
  const across = (x) => (x / extent[0]) * wide, down = (y) => (y / extent[1]) * high;
  const outside = points.filter(({ x, y }) => x < 0 || y < 0 || x > extent[0] || y > extent[1]);
  const behind = options.behind ? samples.at(options.behind, row) : null;
  const image = behind ? pictureOf(behind) : null;
  const drawing = shape("svg", { viewBox: `0 0 ${wide} ${high}`, class: "screen", role: "img", "aria-label": `${title}: ${[...boxes, ...points].map(({ label }) => label).join(", ")}` });
  if (image) drawing.append(shape("image", { href: image, x: 0, y: 0, width: wide, height: high, preserveAspectRatio: "none" }));
  for (const { list, kind } of boxes) {
    for (let index = 0; index + 3 < list.length; index += 4) {
      const [left, top, right, bottom] = [across(list[index]), down(list[index + 1]), across(list[index + 2]), down(list[index + 3])];
      drawing.append(shape("rect", { x: left, y: top, width: Math.max(2, right - left), height: Math.max(2, bottom - top), class: kind, "stroke-width": 3 }));
    }
  }
  if (points.length > 1) drawing.append(shape("line", { x1: across(points[0].x), y1: down(points[0].y), x2: across(points[1].x), y2: down(points[1].y), class: "miss", "stroke-width": 2.5, "stroke-dasharray": "9 7" }));
  for (const { x, y, mark, kind } of points) {
    const drawn = MARKS[mark](across(x), down(y), 13);
    drawn.setAttribute("class", kind);
    drawing.append(drawn);
  }
  const entries = [...boxes.map(({ kind, label }) => ["box", kind, label]), ...points.map(({ mark, kind, label }) => [mark, kind, label])];
  const values = labelled(samples, row, columns).filter(([, value]) => !isEmpty(value));
  const unseen = [...(options.boxes || []), ...(options.points || [])].map(({ label }) => label).filter((label) => !entries.some(([, , each]) => each === label));
  return make("div", {}, drawing, legend(entries),
    unseen.length ? make("p", { class: "note" }, `Here: ${unseen.map((label) => `no ${label}`).join(", ")}.`) : null,
    outside.length ? make("p", { class: "note" }, `Outside the screen: ${outside.map(({ label, x, y }) => `${label} (${digits(x)}, ${digits(y)})`).join(", ")}.`) : null,
    behind && !image ? make("p", { class: "note" }, make("code", {}, behind), ` ${NOT_HERE}.`) : null,
    !behind && options.unpictured ? make("p", { class: "note" }, options.unpictured) : null,
    values.length ? facts(values.map(([label, value]) => [label, plain(value)])) : null);
};

// Round places on an axis, about `count` of them.
const ticks = (low, high, count) => {
  const step = [1, 2, 5, 10].map((each) => each * 10 ** Math.floor(Math.log10((high - low) / count || 1))).find((each) => (high - low) / each <= count) || 1;
  const places = [];
  for (let place = Math.ceil(low / step) * step; place <= high + step / 1e6; place += step) places.push(Number(place.toPrecision(12)));
  return places;
};

// A line over time: `t`, the lowest and the highest value around each, a threshold, spans in lanes of their own.
const seriesPanel = (samples, row, { columns, options, title }) => {
  const data = samples.at(columns.series, row);
  if (!data || !data.t.length) return null;
  const WIDE = 640, HIGH = 220, LEFT = 46, RIGHT = 8, TOP = 8, LANE = 12, spans = data.spans.filter(({ at }) => at.length);
  const lanes = spans.length, bottom = HIGH - 22 - lanes * LANE;
  const values = [...data.low, ...data.high, ...(isNumber(data.threshold) ? [data.threshold] : [])].filter(isNumber);
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9), first = data.t[0], last = Math.max(data.t.at(-1), first + 1e-9);
  const across = (t) => LEFT + ((t - first) / (last - first)) * (WIDE - LEFT - RIGHT), down = (value) => bottom - ((value - low) / (high - low)) * (bottom - TOP);
  const said = [isNumber(data.threshold) ? `threshold ${digits(data.threshold)}` : "no threshold", ...spans.map(({ label, at }) => `${label}: ${at.slice(0, 5).map(([from, to]) => `${digits(from)} to ${digits(to)}`).join(", ")}${at.length > 5 ? ` and ${at.length - 5} more` : ""}`)].join("; ");
  const drawing = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "series", role: "img", "aria-label": `${title}: ${said}` });
  for (const place of ticks(low, high, 4)) drawing.append(shape("line", { x1: LEFT, x2: WIDE - RIGHT, y1: down(place), y2: down(place), class: "rail" }), shape("text", { x: LEFT - 6, y: down(place) + 4, "text-anchor": "end" }, format(place)));
  for (const place of ticks(first, last, 6)) drawing.append(shape("text", { x: across(place), y: HIGH - 4, "text-anchor": "middle" }, `${format(place)}${options.unit ? ` ${options.unit}` : ""}`));
  spans.forEach(({ kind, at }, lane) => {
    for (const [from, to] of at) {
      const x = across(from), width = Math.max(2, across(to) - x);
      if (kind === "attack") drawing.append(shape("rect", { x, y: TOP, width, height: bottom - TOP, class: `${kind} wash` }));
      drawing.append(shape("rect", { x, y: bottom + 4 + lane * LANE, width, height: LANE - 4, class: kind }));
    }
  });
  const top = data.t.map((t, index) => `${across(t).toFixed(1)} ${down(data.high[index]).toFixed(1)}`);
  const under = data.t.map((t, index) => `${across(t).toFixed(1)} ${down(data.low[index]).toFixed(1)}`).reverse();
  drawing.append(shape("path", { d: `M${[...top, ...under].join("L")}Z`, class: "band" }), shape("path", { d: `M${top.join("L")}`, class: "line" }));
  if (isNumber(data.threshold)) drawing.append(shape("line", { x1: LEFT, x2: WIDE - RIGHT, y1: down(data.threshold), y2: down(data.threshold), class: "threshold" }));
  const entries = [["line", "line", "score"], ...(isNumber(data.threshold) ? [["line", "threshold", `threshold ${digits(data.threshold)}`]] : []), ...spans.map(({ kind, label }) => ["box", kind, label])];
  const none = data.spans.filter(({ at }) => !at.length).map(({ label }) => `no ${label}`);
  return make("div", {}, drawing, legend(entries), none.length ? make("p", { class: "note" }, `Here: ${none.join(", ")}.`) : null);
};

const KINDS = { pairs: pairsPanel, texts: textsPanel, table: tablePanel, picture: picturePanel, drawing: drawingPanel, series: seriesPanel };

// The panels of a sample; one without anything to show says why, or is left out.
const panels = (samples, row) => (samples.data.panels || []).map((declared) => {
  const body = Object.hasOwn(KINDS, declared.kind) ? KINDS[declared.kind](samples, row, declared) : null;
  if (body === null && !declared.missing) return null;
  return make("div", { class: `part ${declared.kind}` }, make("h4", {}, declared.title), body ?? make("p", { class: "note" }, declared.missing),
    body !== null && declared.note ? make("p", { class: "note" }, declared.note) : null);
});

// Columns that a panel shows, so that they are not listed once more.
const inPanels = (samples) => new Set((samples.data.panels || []).flatMap(({ columns, options }) => [
  ...Object.values(columns), ...Object.values(options.badges || {}), ...(options.size || []), options.screen, options.behind,
  ...(options.boxes || []).map(({ column }) => column), ...(options.points || []).flatMap(({ column, x, y }) => [column, x, y]),
  ...Object.values(columns).flatMap((column) => (column.includes("{}") ? (options.rows || []).map((name) => column.replace("{}", name)) : [])),
]));
