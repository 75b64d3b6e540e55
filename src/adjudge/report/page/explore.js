// The samples of a run.
const FIRST = 5; // so many other models are in sight, the rest folded
const exploreSamples = async (host) => {
  const data = await unpack("samples-data");
  if (data === null) {
    host.append(make("p", { class: "note" }, "This browser cannot unpack the samples; the worst are listed below."));
    return;
  }
  const samples = new Samples(data), { n, failed } = samples;
  const at = (name, row) => samples.at(name, row);
  const named = (name) => name.replace(/^(meta\.|rating:|score\.)/, "").replaceAll("_", " ");
  const many = samples.words("model").length > 1;
  const told = data.columns.verdict && Array.from({ length: n }, (_, row) => row).some((row) => at("verdict", row) !== at("bucket", row));
  const isWord = (name) => ({ name, fits: (row, value) => String(at(name, row)) === value });
  const other = (row) => {
    const id = at("sample", row), others = [];
    for (let each = 0; each < n; each += 1) if (each !== row && at("sample", each) === id) others.push(each);
    return others;
  };
  const source = {
    n,
    order: ranked(n, (row) => samples.rank(row)),
    heads: [
      { name: "sample", label: "id", width: "minmax(90px, 1.2fr)", slim: "minmax(76px, 1fr)" },
      ...(many ? [{ name: "model", label: "model", width: "minmax(90px, 1.4fr)", slim: "minmax(70px, 1.25fr)" }] : []),
      { name: "bucket", label: "bucket", width: "96px", slim: "92px" },
      ...(told ? [{ name: "verdict", label: "verdict", width: "minmax(80px, .9fr)", slim: many ? null : "minmax(70px, 1fr)" }] : []),
      ...samples.shownScores().map((name) => ({ name, label: named(name), width: `minmax(76px, ${Math.max(84, Math.min(170, 18 + 7 * named(name).length))}px)`, number: true })),
      { name: "worst", label: "worst rule", width: "minmax(110px, 2fr)" },
    ],
    cell: (name, row) => (name === "worst" ? samples.worst(row) : at(name, row)),
    node: (name, row) => (name === "bucket" && at(name, row) ? badge(at(name, row)) : name === "sample" ? shortened(at(name, row)) : null),
    text: (row) => samples.text(row),
    filters: [
      ...[...new Set(["model", data.system])].map((name) => ({ ...isWord(name), label: `every ${name}`, options: samples.words(name) })),
      { ...isWord("bucket"), label: "every bucket", options: samples.words("bucket") },
      { name: "rule", label: "every rule", options: [...new Set(failed.flat().map((atom) => atom.code))].sort(), fits: (row, value) => failed[row].some((atom) => atom.code === value) },
      { name: "severity", label: "every severity", options: [...new Set(failed.flat().map((atom) => atom.severity))].sort(), fits: (row, value) => failed[row].some((atom) => atom.severity === value) },
      ...data.slices.filter((name) => name !== data.system).slice(0, data.system === "model" ? 4 : 3).map((name) => ({ ...isWord(name), label: `every ${named(name)}`, options: samples.words(name) })),
    ],
    link: (row) => [["sample", at("sample", row)], ["model", at("model", row) ?? ""]],
    row: (parts) => {
      const id = parts.get("sample"), model = parts.get("model");
      for (let row = 0; row < n; row += 1) if (at("sample", row) === id && (!model || at("model", row) === model)) return row;
      return -1;
    },
    open: (row, turn) => {
      const line = (each) => [make("span", { class: "name" }, at("model", each)), badge(at("bucket", each)), make("span", { class: "excerpt" }, samples.said(each))];
      const others = other(row), buttons = others.slice(0, 30).map((each) => {
        const button = make("button", { type: "button", title: "Open it" }, ...line(each));
        button.addEventListener("click", () => turn(each));
        return button;
      });
      const more = others.length - 30;
      return [
        make("h3", {}, `${at("sample", row)} `, make("span", { class: "model" }, at("model", row) ?? "")),
        ...findings(samples, row, others.length ? make("div", { class: "part others" }, make("h4", {}, "What it said, and what the others said"), make("div", { class: "own" }, ...line(row)), ...buttons.slice(0, FIRST),
          buttons.length > FIRST ? folded(several(buttons.length - FIRST, "more model"), ...buttons.slice(FIRST)) : null,
          more > 0 ? make("p", { class: "note" }, `and ${more.toLocaleString("en")} more: search for the id.`) : null) : null),
      ];
    },
    counted: (count, sort) => {
      const less = n < data.total ? `; ${(data.total - n).toLocaleString("en")} more are in the run` : "";
      return `${count.toLocaleString("en")} of ${n.toLocaleString("en")} samples, the worst first${sort ? " unless sorted" : ""}${less}.`;
    },
  };
  explorer(host, source);
  whenIdle(n, source.text);
};
if (document.getElementById("samples-data")) exploreSamples(document.getElementById("explorer"));
