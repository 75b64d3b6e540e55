"use strict";
(async () => {
  const store = document.getElementById("samples-data");
  const host = document.getElementById("explorer");
  if (!store || !host) return;
  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") node.className = value;
      else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  let data;
  try {
    const bytes = Uint8Array.from(atob(store.textContent.trim()), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    data = JSON.parse(await new Response(stream).text());
  } catch {
    host.append(make("p", { class: "note" }, "This browser cannot unpack the samples; the worst are listed below."));
    return;
  }

  const n = data.n, columns = data.columns;
  const at = (name, row) => {
    const column = columns[name];
    if (!column) return null;
    if (column.words) return column.codes[row] < 0 ? null : column.words[column.codes[row]];
    return column.values[row];
  };
  const positions = data.rules.flatMap((rule) => rule.slots.map((slot) => ({ rule, slot })));
  const SEVERITIES = ["INFO", "WARNING", "CRITICAL"];
  const failed = Array.from({ length: n }, () => []);
  data.failed.forEach((atoms, position) => atoms.s.forEach((row, index) => failed[row].push({
    position, code: data.codes[atoms.c[index]], severity: SEVERITIES[atoms.e[index]], observed: atoms.o[index],
    why: atoms.w[index] < 0 ? null : data.reasons[atoms.w[index]],
  })));
  for (const atoms of failed) atoms.sort((a, b) => (b.severity === "CRITICAL") - (a.severity === "CRITICAL") || a.position - b.position);

  // Numbers and messages as `explain` writes them.
  const digits = (value) => {
    if (value === 0) return "0";
    const exponent = Math.floor(Math.log10(Math.abs(value)));
    if (exponent >= 6) return Math.abs(value) < 1e15 ? value.toFixed(0) : value.toExponential(5);
    const text = exponent < -4 ? value.toExponential(5) : value.toPrecision(6);
    return text.includes(".") ? text.replace(/\.?0+(e|$)/, "$1") : text;
  };
  const message = (atom, outcome) => {
    const { rule, slot } = positions[atom.position];
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
  };

  const scores = Object.keys(columns).filter((name) => columns[name].values && columns[name].values.some((value) => typeof value === "number")
    && !columns[name].values.some((value) => Array.isArray(value) || typeof value === "string")).slice(0, 24);
  const preferred = ["total", "score", "rubric", "mean_score", "confidence", "distance", "css"].filter((name) => scores.includes(name)).slice(0, 2);
  const shown = preferred.length ? preferred : scores.slice(0, 1);
  const heads = [["sample", "id"], ["model", "model"], ["bucket", "bucket"], ["verdict", "verdict"], ...shown.map((name) => [name, name.replaceAll("_", " ")]), ["worst", "worst rule"]];
  const worst = (row) => (failed[row].length ? failed[row][0].code : "");
  const cell = (name, row) => (name === "worst" ? worst(row) : at(name, row));

  const state = { q: "", sort: "", down: false, filters: {}, chosen: -1 };
  const haystack = Array(n);
  const text = (row) => (haystack[row] ??= `${at("sample", row)}\n${at("model", row)}\n${at("response", row) ?? ""}`.toLowerCase());
  const fits = (row) => {
    for (const [name, value] of Object.entries(state.filters)) {
      if (!value) continue;
      if (name === "rule" ? !failed[row].some((atom) => atom.code === value)
        : name === "severity" ? !failed[row].some((atom) => atom.severity === value)
          : String(at(name, row)) !== value) return false;
    }
    return true;
  };
  const rank = (row) => failed[row].reduce((sum, atom) => sum + (atom.severity === "CRITICAL" ? 1000 : 1), 0) + (at("bucket", row) === "passed" ? 0 : 0.5);
  const order = Array.from({ length: n }, (_, row) => row);
  const ranks = order.map(rank);
  order.sort((a, b) => ranks[b] - ranks[a] || a - b);
  let rows = [];
  const choose = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    rows = [];
    for (const row of order) if (fits(row) && words.every((word) => text(row).includes(word))) rows.push(row);
    if (state.sort) {
      const sign = state.down ? -1 : 1;
      rows = rows.map((row) => [cell(state.sort, row), row]);
      rows.sort(([a], [b]) => (a === null || a === "" ? (b === null || b === "" ? 0 : 1) : b === null || b === "" ? -1 : sign * (a < b ? -1 : a > b ? 1 : 0)));
      rows = rows.map(([, row]) => row);
    }
  };

  // The controls.
  const search = make("input", { type: "search", id: "explore-search", placeholder: "id or words of the answer ( / )", "aria-label": "Search ids and answers" });
  const controls = make("div", { class: "controls" }, search);
  const select = (name, label, options) => {
    if (options.length < 2) return;
    const box = make("select", { "aria-label": label, "data-filter-name": name }, make("option", { value: "" }, label),
      ...options.map((value) => make("option", { value }, value.length > 60 ? value.slice(0, 59) + "…" : value)));
    box.addEventListener("change", () => { state.filters[name] = box.value; update(); });
    controls.append(box);
  };
  const words = (name) => (columns[name] && columns[name].words ? [...columns[name].words].sort() : []);
  select("model", "every model", words("model").slice(0, 2000));
  select("bucket", "every bucket", words("bucket"));
  select("rule", "every rule", [...new Set(failed.flat().map((atom) => atom.code))].sort());
  select("severity", "every severity", [...new Set(failed.flat().map((atom) => atom.severity))].sort());
  for (const name of data.slices.slice(0, 4)) select(name, `every ${name.replaceAll("_", " ")}`, words(name));
  const count = make("p", { class: "note", role: "status", id: "explore-count" });

  // The table: only the rows in sight stand in the page.
  const HEIGHT = 30;
  const headRow = make("div", { class: "xrow xhead", role: "row" });
  for (const [name, label] of heads) {
    const button = make("button", { type: "button" }, label);
    const head = make("span", { role: "columnheader", "data-name": name }, button);
    button.addEventListener("click", () => {
      state.down = state.sort === name ? !state.down : false;
      state.sort = name;
      update();
    });
    headRow.append(head);
  }
  const body = make("div", { class: "xbody", tabindex: "0", role: "table", "aria-label": "Samples" });
  const space = make("div", { class: "xspace" });
  body.append(space);
  const format = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? digits(value) : String(value));
  const draw = () => {
    const first = Math.max(0, Math.floor(body.scrollTop / HEIGHT) - 8);
    const last = Math.min(rows.length, first + Math.ceil(body.clientHeight / HEIGHT) + 16);
    space.style.height = `${rows.length * HEIGHT}px`;
    space.replaceChildren(...rows.slice(first, last).map((row, index) => {
      const line = make("div", { class: `xrow${row === state.chosen ? " chosen" : ""}`, role: "row", "data-row": row });
      line.style.top = `${(first + index) * HEIGHT}px`;
      for (const [name] of heads) {
        const value = cell(name, row);
        line.append(make("span", { role: "cell", class: name === "bucket" ? "" : typeof value === "number" ? "num" : "" },
          name === "bucket" && value ? make("span", { class: `badge ${value}` }, value) : format(value)));
      }
      return line;
    }));
  };
  body.addEventListener("scroll", () => requestAnimationFrame(draw));
  space.addEventListener("click", (event) => {
    const line = event.target.closest("[data-row]");
    if (line) open(Number(line.dataset.row));
  });

  // One sample.
  const detail = make("div", { class: "xdetail", "aria-live": "polite", hidden: true });
  const facts = (pairs) => make("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) => [make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, value)]));
  const badge = (word) => make("span", { class: `badge ${String(word).toLowerCase()}` }, String(word));
  const answer = (row) => {
    const response = at("response", row);
    if (typeof response !== "string") return null;
    const start = at("start", row), end = at("end", row);
    const block = make("pre");
    if (Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start < end) {
      const signs = Array.from(response);
      block.append(signs.slice(0, start).join(""), make("mark", {}, signs.slice(start, end).join("")), signs.slice(end).join(""));
    } else block.append(response);
    return block;
  };
  const grid = (row) => {
    if (!data.grid) return null;
    const names = Object.entries(data.grid.columns);
    const lists = names.map(([, column]) => at(column, row));
    if (!lists.some(Array.isArray)) return null;
    const size = data.grid.rows.length;
    const steps = Math.max(...lists.map((list) => (Array.isArray(list) ? list.length / size : 1)));
    const wrong = new Set(failed[row].map((atom) => `${positions[atom.position].slot.field}@${positions[atom.position].slot.step}`));
    const head = make("tr", {}, make("th", {}, "field"), ...names.map(([label]) => make("th", { class: "num" }, label)), make("th", { class: "num" }, "error"));
    const lines = [];
    for (let step = 0; step < steps; step += 1) {
      data.grid.rows.forEach((field, index) => {
        const values = lists.map((list) => (Array.isArray(list) ? list[list.length > size ? step * size + index : index] : null));
        const predicted = values[names.findIndex(([label]) => label === data.grid.predicted)], truth = values[names.findIndex(([label]) => label === data.grid.true)];
        const error = typeof predicted === "number" && typeof truth === "number" ? predicted - truth : null;
        lines.push(make("tr", { class: wrong.has(`${field}@${step}`) ? "wrong" : "" }, make("td", {}, steps > 1 ? `${field}, t + ${step + 1}` : field),
          ...values.map((value) => make("td", { class: "num" }, format(value))), make("td", { class: "num" }, format(error))));
      });
    }
    return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines)));
  };
  const picture = (row) => {
    const numbers = ["x", "y", "said_x", "said_y"].map((name) => at(name, row));
    const boxes = at("boxes", row);
    if (!columns.said_x || (!Array.isArray(boxes) && numbers.every((value) => typeof value !== "number"))) return null;
    const wide = at("screen_width", row) || 1, high = at("screen_height", row) || 1;
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
  const plainColumn = (name) => !["sample", "model", "bucket", "verdict", "response", "characters", "start", "end", "boxes"].includes(name)
    && !(data.grid && Object.values(data.grid.columns).includes(name));
  const open = (row, quiet = false) => {
    state.chosen = row;
    const id = at("sample", row);
    const others = [];
    for (let other = 0; other < n; other += 1) if (other !== row && at("sample", other) === id) others.push(other);
    const passed = [], unchecked = new Map();
    positions.forEach(({ rule, slot }, position) => {
      const outcome = data.outcomes[position][row];
      if (outcome === "p") passed.push(`${rule.title}${slot.field ? `: ${slot.field}` : ""}`);
      if (outcome === "n" || outcome === "e") {
        const atoms = data.unchecked[position], index = atoms.s.indexOf(row);
        const why = index < 0 || atoms.w[index] < 0 ? "no reason given" : data.reasons[atoms.w[index]];
        if (why !== data.not_asked) unchecked.set(why, (unchecked.get(why) || 0) + 1);
      }
    });
    const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", shut);
    const pairs = Object.keys(columns).filter(plainColumn).map((name) => [name, at(name, row)])
      .filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0))
      .map(([name, value]) => [name, Array.isArray(value) ? value.map(format).join(", ").slice(0, 600) : format(value)]);
    detail.replaceChildren(...[
      close,
      make("h3", {}, `${id} `, make("span", { class: "model" }, at("model", row) ?? "")),
      make("p", {}, badge(at("bucket", row)), ` verdict `, make("strong", {}, format(at("verdict", row)))),
      others.length ? make("p", { class: "others" }, "The same sample: ", ...others.slice(0, 30).map((other) => {
        const button = make("button", { type: "button" }, `${at("model", other)} `, badge(at("bucket", other)));
        button.addEventListener("click", () => open(other));
        return button;
      })) : null,
      failed[row].length ? make("ul", { class: "atoms" }, ...failed[row].map((atom) => make("li", {}, badge(atom.severity), ` ${message(atom, "f")} `, make("code", {}, atom.code)))) : make("p", { class: "note" }, "No check failed."),
      picture(row),
      grid(row),
      ...[...unchecked].map(([why, times]) => make("p", { class: "note" }, `${times} not applicable: ${why}`)),
      passed.length ? make("details", {}, make("summary", {}, `${passed.length} checks passed`), make("ul", { class: "passed" }, ...passed.map((title) => make("li", {}, title)))) : null,
      answer(row),
      facts(pairs),
    ].filter((part) => part !== null));
    detail.hidden = false;
    host.classList.add("open");
    if (!quiet) remember();
    const place = rows.indexOf(row);
    if (place >= 0 && (place * HEIGHT < body.scrollTop || (place + 1) * HEIGHT > body.scrollTop + body.clientHeight)) body.scrollTop = Math.max(0, place * HEIGHT - body.clientHeight / 2);
    draw();
  };
  const shut = () => {
    state.chosen = -1;
    detail.hidden = true;
    host.classList.remove("open");
    remember();
    draw();
  };

  // Every state has a link.
  const remember = () => {
    const parts = new URLSearchParams();
    if (state.chosen >= 0) { parts.set("sample", at("sample", state.chosen)); parts.set("model", at("model", state.chosen) ?? ""); }
    if (state.q) parts.set("q", state.q);
    if (state.sort) parts.set("sort", (state.down ? "-" : "") + state.sort);
    for (const [name, value] of Object.entries(state.filters)) if (value) parts.set(`is.${name}`, value);
    history.replaceState(null, "", `#${parts.toString() || "explore"}`);
  };
  const recall = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (![...parts.keys()].some((key) => ["sample", "q", "sort"].includes(key) || key.startsWith("is."))) return;
    state.q = search.value = parts.get("q") || "";
    const sort = parts.get("sort") || "";
    state.down = sort.startsWith("-");
    state.sort = sort.replace(/^-/, "");
    state.filters = {};
    for (const box of controls.querySelectorAll("select")) {
      const name = box.dataset.filterName;
      state.filters[name] = box.value = parts.get(`is.${name}`) || "";
    }
    update(true);
    const id = parts.get("sample"), model = parts.get("model");
    for (let row = 0; id !== null && row < n; row += 1) if (at("sample", row) === id && (!model || at("model", row) === model)) { open(row, true); break; }
    host.scrollIntoView();
  };
  const update = (quiet = false) => {
    choose();
    const less = n < data.total ? `; ${(data.total - n).toLocaleString("en")} more are in the run (adjudge query RUN "select * from samples")` : "";
    count.textContent = `${rows.length.toLocaleString("en")} of ${n.toLocaleString("en")} samples, the worst first${state.sort ? " unless sorted" : ""}${less}. j and k move, / searches, Esc closes.`;
    for (const head of headRow.children) {
      if (head.dataset.name === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    body.scrollTop = 0;
    draw();
    if (!quiet) remember();
  };
  search.addEventListener("input", () => { state.q = search.value; update(); });
  const move = (by) => {
    if (!rows.length) return;
    const place = rows.indexOf(state.chosen);
    open(rows[Math.min(rows.length - 1, Math.max(0, place < 0 ? 0 : place + by))]);
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") { if (typing) event.target.blur(); else if (state.chosen >= 0) shut(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); search.focus(); host.scrollIntoView(); }
    if (event.key === "j") move(1);
    if (event.key === "k") move(-1);
  });
  addEventListener("hashchange", recall);
  addEventListener("resize", draw);
  host.style.setProperty("--columns", `minmax(90px, 1.4fr) minmax(90px, 1.2fr) 96px minmax(80px, .9fr) ${shown.map(() => "84px").join(" ")} minmax(110px, 2fr)`);
  host.append(controls, count, make("div", { class: "xpanes" }, make("div", { class: "xtable" }, headRow, body), detail));
  host.dataset.ready = "true";
  update(true);
  recall();
})();
