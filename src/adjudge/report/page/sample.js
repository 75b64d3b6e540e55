// One sample, opened: what failed, what passed, what was not checked, the answer, and what is particular to a protocol.
const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, value)]));

const answer = (samples, row) => {
  const response = samples.at("response", row);
  if (typeof response !== "string") return null;
  const start = samples.at("start", row), end = samples.at("end", row);
  const block = make("pre");
  if (Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start < end) {
    const signs = Array.from(response);
    block.append(signs.slice(0, start).join(""), make("mark", {}, signs.slice(start, end).join("")), signs.slice(end).join(""));
  } else block.append(response);
  return block;
};

const grid = (samples, row) => {
  const described = samples.data.grid;
  if (!described) return null;
  const names = Object.entries(described.columns);
  const lists = names.map(([, column]) => samples.at(column, row));
  if (!lists.some(Array.isArray)) return null;
  const size = described.rows.length;
  const steps = Math.max(...lists.map((list) => (Array.isArray(list) ? list.length / size : 1)));
  const slots = samples.failed[row].map((atom) => samples.positions[atom.position].slot);
  const wrong = new Set(slots.map((slot) => `${slot.field}@${slot.step}`));
  const head = make("tr", {}, make("th", {}, "field"), ...names.map(([label]) => make("th", { class: "num" }, label)), make("th", { class: "num" }, "error"));
  const lines = [];
  for (let step = 0; step < steps; step += 1) {
    described.rows.forEach((field, index) => {
      const values = lists.map((list) => (Array.isArray(list) ? list[list.length > size ? step * size + index : index] : null));
      const predicted = values[names.findIndex(([label]) => label === described.predicted)], truth = values[names.findIndex(([label]) => label === described.true)];
      const error = typeof predicted === "number" && typeof truth === "number" ? predicted - truth : null;
      lines.push(make("tr", { class: wrong.has(`${field}@${step}`) ? "wrong" : "" }, make("td", {}, steps > 1 ? `${field}, t + ${step + 1}` : field),
        ...values.map((value) => make("td", { class: "num" }, format(value))), make("td", { class: "num" }, format(error))));
    });
  }
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines)));
};

const picture = (samples, row) => {
  const numbers = ["x", "y", "said_x", "said_y"].map((name) => samples.at(name, row));
  const boxes = samples.at("boxes", row);
  if (!samples.columns.said_x || (!Array.isArray(boxes) && numbers.every((value) => typeof value !== "number"))) return null;
  const wide = samples.at("screen_width", row) || 1, high = samples.at("screen_height", row) || 1;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const add = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    svg.append(node);
  };
  svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  svg.setAttribute("class", "screen");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "the screen: target boxes, the recorded and the predicted point");
  const unit = wide / 100;
  for (let index = 0; Array.isArray(boxes) && index + 3 < boxes.length; index += 4) {
    const [left, top, right, bottom] = boxes.slice(index, index + 4);
    add("rect", { x: left, y: top, width: Math.max(0, right - left), height: Math.max(0, bottom - top), class: "target", "stroke-width": unit / 2 });
  }
  const [x, y, saidX, saidY] = numbers;
  if (typeof saidX === "number" && typeof x === "number") add("line", { x1: x, y1: y, x2: saidX, y2: saidY, class: "miss", "stroke-width": unit / 3 });
  if (typeof x === "number") add("circle", { cx: x, cy: y, r: unit * 1.4, class: "recorded" });
  if (typeof saidX === "number") add("circle", { cx: saidX, cy: saidY, r: unit * 1.4, class: "predicted" });
  return make("div", {}, svg, make("p", { class: "note" }, "Target boxes; green the recorded point, red the predicted one."));
};

// Titles of the checks that passed, and how many were not applicable for each reason.
const unfailed = (samples, row) => {
  const { data } = samples, passed = [], unchecked = new Map();
  samples.positions.forEach(({ rule, slot }, position) => {
    const outcome = data.outcomes[position][row];
    if (outcome === "p") passed.push(`${rule.title}${slot.field ? `: ${slot.field}` : ""}`);
    if (outcome === "n" || outcome === "e") {
      const atoms = data.unchecked[position], index = atoms.s.indexOf(row);
      const why = index < 0 || atoms.w[index] < 0 ? "no reason given" : data.reasons[atoms.w[index]];
      if (why !== data.not_asked) unchecked.set(why, (unchecked.get(why) || 0) + 1);
    }
  });
  return { passed, unchecked };
};

// Everything else that the run holds of a sample, as names and texts.
const plainFacts = (samples, row) => {
  const elsewhere = new Set(["sample", "model", "bucket", "verdict", "response", "characters", "start", "end", "boxes",
    ...(samples.data.grid ? Object.values(samples.data.grid.columns) : [])]);
  return Object.keys(samples.columns).filter((name) => !elsewhere.has(name)).map((name) => [name, samples.at(name, row)])
    .filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => [name, Array.isArray(value) ? value.map(format).join(", ").slice(0, 600) : format(value)]);
};

// The evidence and the answer of a sample, in the order in which they are read.
const findings = (samples, row) => {
  const { passed, unchecked } = unfailed(samples, row);
  const failed = samples.failed[row];
  return [
    make("p", {}, badge(samples.at("bucket", row)), ` verdict `, make("strong", {}, format(samples.at("verdict", row)))),
    failed.length ? make("ul", { class: "atoms" }, ...failed.map((atom) => make("li", {}, badge(atom.severity), ` ${samples.message(atom, "f")} `, make("code", {}, atom.code)))) : make("p", { class: "note" }, "No check failed."),
    picture(samples, row),
    grid(samples, row),
    ...[...unchecked].map(([why, times]) => make("p", { class: "note" }, `${times} not applicable: ${why}`)),
    passed.length ? make("details", {}, make("summary", {}, `${passed.length} checks passed`), make("ul", { class: "passed" }, ...passed.map((title) => make("li", {}, title)))) : null,
    answer(samples, row),
    facts(plainFacts(samples, row)),
  ];
};
