
"use strict";
(() => {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });

  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase() : cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      if (!button.textContent.trim()) button.setAttribute("aria-label", `Sort by column ${column + 1}`);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("num") ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
        rows.sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : sign * (a < b ? -1 : a > b ? 1 : 0)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  const filter = (input, items) => input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of items()) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
  });
  // Of a long table the first rows, and all at a click or when it is filtered.
  for (const table of document.querySelectorAll("table[data-first]")) {
    const first = Number(table.dataset.first), rows = table.tBodies[0].rows.length;
    if (rows <= first + 2) continue;
    table.classList.add("shortened");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "clear";
    button.textContent = `Show all ${rows} rows`;
    button.addEventListener("click", () => { table.classList.remove("shortened"); button.remove(); });
    table.parentElement.after(button);
  }

  for (const table of document.querySelectorAll("table[data-filter]")) {
    const label = document.createElement("label");
    label.className = "filter";
    label.append("Filter ");
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "words that a row must have";
    label.append(input);
    table.parentElement.before(label);
    filter(input, () => table.tBodies[0].rows);
    input.addEventListener("input", () => table.classList.toggle("filtered", input.value.trim() !== ""));
  }
  const samples = document.getElementById("sample-filter");
  if (samples) filter(samples, () => document.querySelectorAll("details.sample"));

  const tip = document.getElementById("tip");
  const text = (node) => {
    const marked = node.closest("[data-tip]");
    if (marked) return marked.dataset.tip;
    const drawn = node.closest(".chart [aria-roledescription='bar'], .chart [aria-roledescription='point'], .chart [aria-roledescription='rule'], .chart [aria-roledescription='circle'], .chart [aria-roledescription='rect mark'], .chart [role='graphics-symbol'][aria-label]");
    return drawn && !/axis|legend|title/.test(drawn.getAttribute("aria-roledescription") || "") ? drawn.getAttribute("aria-label") : null;
  };
  document.addEventListener("pointermove", (event) => {
    const found = event.target instanceof Element ? text(event.target) : null;
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = found;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
})();
