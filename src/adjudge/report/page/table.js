// A table of many rows that filters, sorts, searches, opens and links; only the rows in sight stand in the page.
// `source` says what the rows are:
//   n, order        how many there are, and the row numbers in their first order
//   heads           [{ name, label, title, width, slim, number }] of the columns; where there is little room, those with a `slim` width
//                   are shown; cell(name, row) is what stands in one, node(name, row) may draw it instead
//   text(row)       what is searched, in small letters
//   filters         [{ name, label, options, fits(row, value) }]; those with fewer than two options are not shown
//   link(row)       [name, value] pairs by which row(parts) finds it again
//   choose(row, node) is told what somebody chose, by a click on a node or else by a key; it may be absent
//   open(row, turn) the nodes that are shown when it is opened; turn(row) opens another
//   counted(count)  the line above the table
// A long id without its middle, for the beginning is often the same for all.
const shortened = (id) => (typeof id === "string" && id.length > 34 ? make("span", { title: id }, `${id.slice(0, 10)}…${id.slice(-20)}`) : id);
const narrow = () => matchMedia("(max-width: 760px)").matches;
const explorer = (host, source) => {
  const state = { q: "", sort: "", down: false, filters: {}, chosen: -1 };
  const filterOf = Object.fromEntries(source.filters.map((filter) => [filter.name, filter]));
  let rows = [];
  const choose = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = Object.entries(state.filters).filter(([name, value]) => value && filterOf[name]);
    rows = source.order.filter((row) => filters.every(([name, value]) => filterOf[name].fits(row, value)) && words.every((word) => source.text(row).includes(word)));
    if (state.sort) {
      const sign = state.down ? -1 : 1;
      rows = rows.map((row) => [source.cell(state.sort, row), row]);
      rows.sort(([a], [b]) => (a === null || a === "" ? (b === null || b === "" ? 0 : 1) : b === null || b === "" ? -1 : sign * (a < b ? -1 : a > b ? 1 : 0)));
      rows = rows.map(([, row]) => row);
    }
  };

  const search = make("input", { type: "search", id: "explore-search", placeholder: "id or words of the answer ( / )", "aria-label": "Search ids and answers" });
  const boxes = make("div", { class: "boxes", id: "explore-filters" });
  const fold = make("button", { type: "button", class: "fold", "aria-expanded": "false", "aria-controls": "explore-filters" }, "Filters"); // where there is little room
  fold.addEventListener("click", () => fold.setAttribute("aria-expanded", String(fold.getAttribute("aria-expanded") === "false")));
  const controls = make("div", { class: "controls" }, search, fold, boxes);
  for (const { name, label, options } of source.filters) {
    if (options.length < 2) continue;
    const box = make("select", { "aria-label": label, "data-filter-name": name }, make("option", { value: "" }, label),
      ...options.map((value) => make("option", { value }, value.length > 60 ? value.slice(0, 59) + "…" : value)));
    box.addEventListener("change", () => { state.filters[name] = box.value; update(); });
    boxes.append(box);
  }
  const count = make("p", { class: "note", role: "status", id: "explore-count" });

  const clear = make("button", { type: "button", class: "clear" }, "Show all");
  clear.addEventListener("click", () => {
    state.q = search.value = "";
    state.filters = {};
    for (const box of boxes.children) box.value = "";
    update();
  });

  const height = () => (narrow() ? 44 : 30);
  const headRow = make("div", { class: "xrow xhead", role: "row" });
  const classOf = ({ slim, number }) => [number ? "num" : "", slim ? "" : "roomy"].filter(Boolean).join(" ");
  for (const { name, label, title, ...look } of source.heads) {
    const button = make("button", { type: "button", title: title ?? label }, label);
    const head = make("span", { role: "columnheader", "data-name": name, class: classOf(look) }, button);
    button.addEventListener("click", () => {
      state.down = state.sort === name ? !state.down : false;
      state.sort = name;
      update();
    });
    headRow.append(head);
  }
  const body = make("div", { class: "xbody", tabindex: "0", role: "rowgroup", "aria-label": "Samples, scrolling" });
  const space = make("div", { class: "xspace", role: "presentation" });
  body.append(space);
  const draw = () => {
    const HEIGHT = height();
    const first = Math.max(0, Math.floor(body.scrollTop / HEIGHT) - 8);
    const last = Math.min(rows.length, first + Math.ceil(body.clientHeight / HEIGHT) + 16);
    space.style.height = `${rows.length * HEIGHT}px`;
    space.replaceChildren(...rows.slice(first, last).map((row, index) => {
      const line = make("div", { class: `xrow${row === state.chosen ? " chosen" : ""}`, role: "row", "data-row": row });
      line.style.top = `${(first + index) * HEIGHT}px`;
      for (const { name, ...look } of source.heads) {
        line.append(make("span", { role: "cell", class: classOf(look) }, source.node(name, row) ?? format(source.cell(name, row))));
      }
      return line;
    }));
  };
  body.addEventListener("scroll", () => requestAnimationFrame(draw));
  space.addEventListener("click", (event) => {
    const line = event.target.closest("[data-row]");
    if (line) { source.choose?.(Number(line.dataset.row), event.target); open(Number(line.dataset.row)); }
  });

  const detail = make("div", { class: "xdetail", role: "region", "aria-label": "The opened sample", "aria-live": "polite", hidden: true });
  const open = (row, quiet = false) => {
    state.chosen = row;
    const place = rows.indexOf(row);
    const button = (kind, label, sign, act, off = false) => {
      const node = make("button", { type: "button", class: kind, "aria-label": label, title: label, disabled: off }, sign);
      node.addEventListener("click", act);
      return node;
    };
    const bar = make("div", { class: "xbar" },
      make("span", { class: "note" }, place < 0 ? "" : `${(place + 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}`),
      button("step", "Previous sample", "↑", () => move(-1), place <= 0), button("step", "Next sample", "↓", () => move(1), place === rows.length - 1),
      button("close", "Close", "×", shut));
    detail.replaceChildren(bar, ...source.open(row, open).filter((part) => part !== null && part !== undefined));
    detail.scrollTop = 0;
    detail.hidden = false;
    host.classList.add("open");
    if (!quiet) remember();
    const HEIGHT = height();
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
    if (state.chosen >= 0) for (const [name, value] of source.link(state.chosen)) parts.set(name, value);
    if (state.q) parts.set("q", state.q);
    if (state.sort) parts.set("sort", (state.down ? "-" : "") + state.sort);
    for (const [name, value] of Object.entries(state.filters)) if (value) parts.set(`is.${name}`, value);
    history.replaceState(null, "", `#${parts.toString() || "explore"}`);
  };
  const recall = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (![...parts.keys()].some((key) => ["sample", "q", "sort", "open"].includes(key) || key.startsWith("is."))) return;
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
    const row = parts.has("sample") ? source.row(parts) : -1;
    if (row >= 0) open(row, true);
    else if (parts.has("open") && rows.length) { // the first of those that are left, which is the worst
      source.choose?.(rows[0], null);
      open(rows[0]);
    }
    host.parentElement.scrollIntoView();
  };
  const update = (quiet = false) => {
    choose();
    count.replaceChildren(`${source.counted(rows.length, state.sort)} `, make("span", { class: "keys" }, "j and k move, / searches, Esc closes."));
    const filtered = Object.values(state.filters).filter(Boolean).length;
    if (filtered || state.q) count.append(" ", clear);
    fold.textContent = filtered ? `Filters, ${filtered} set` : "Filters";
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
    const row = rows[Math.min(rows.length - 1, Math.max(0, place < 0 ? 0 : place + by))];
    source.choose?.(row, null);
    open(row);
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") { if (typing) event.target.blur(); else if (state.chosen >= 0) shut(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); search.focus(); host.parentElement.scrollIntoView(); }
    if (event.key === "j") move(1);
    if (event.key === "k") move(-1);
  });
  addEventListener("hashchange", recall);
  addEventListener("resize", draw);
  host.style.setProperty("--columns", source.heads.map(({ width }) => width).join(" "));
  host.style.setProperty("--slim", source.heads.map(({ slim }) => slim).filter(Boolean).join(" "));
  host.append(controls, count, make("div", { class: "xpanes" }, make("div", { class: "xtable", role: "table", "aria-label": "Samples" }, headRow, body), detail));
  host.dataset.ready = "true";
  update(true);
  recall();
  return { open };
};

// Row numbers, those with the highest rank first.
const ranked = (n, rank) => {
  const order = Array.from({ length: n }, (_, row) => row);
  const ranks = order.map(rank);
  return order.sort((a, b) => ranks[b] - ranks[a] || a - b);
};
