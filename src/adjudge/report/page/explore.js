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
  const shown = samples.shownScores();
  const isWord = (name) => ({ name, fits: (row, value) => String(at(name, row)) === value });
  const other = (row) => {
    const id = at("sample", row), others = [];
    for (let each = 0; each < n; each += 1) if (each !== row && at("sample", each) === id) others.push(each);
    return others;
  };
  const source = {
    n,
    order: ranked(n, (row) => samples.rank(row)),
    heads: [["sample", "id"], ["model", "model"], ["bucket", "bucket"], ["verdict", "verdict"], ...shown.map((name) => [name, name.replace(/^score\./, "").replaceAll("_", " ")]), ["worst", "worst rule"]],
    cell: (name, row) => (name === "worst" ? samples.worst(row) : at(name, row)),
    node: (name, row) => (name === "bucket" && at(name, row) ? badge(at(name, row)) : name === "sample" ? shortened(at(name, row)) : null),
    widths: `minmax(90px, 1.4fr) minmax(90px, 1.2fr) 96px minmax(80px, .9fr) ${shown.map(() => "84px").join(" ")} minmax(110px, 2fr)`,
    text: (row) => samples.text(row),
    filters: [
      { ...isWord("model"), label: "every model", options: samples.words("model") },
      { ...isWord("bucket"), label: "every bucket", options: samples.words("bucket") },
      { name: "rule", label: "every rule", options: [...new Set(failed.flat().map((atom) => atom.code))].sort(), fits: (row, value) => failed[row].some((atom) => atom.code === value) },
      { name: "severity", label: "every severity", options: [...new Set(failed.flat().map((atom) => atom.severity))].sort(), fits: (row, value) => failed[row].some((atom) => atom.severity === value) },
      ...data.slices.slice(0, 4).map((name) => ({ ...isWord(name), label: `every ${name.replace(/^(meta\.|rating:)/, "").replaceAll("_", " ")}`, options: samples.words(name) })),
    ],
    link: (row) => [["sample", at("sample", row)], ["model", at("model", row) ?? ""]],
    row: (parts) => {
      const id = parts.get("sample"), model = parts.get("model");
      for (let row = 0; row < n; row += 1) if (at("sample", row) === id && (!model || at("model", row) === model)) return row;
      return -1;
    },
    open: (row, turn) => {
      const others = other(row), buttons = others.slice(0, 30).map((each) => {
        const button = make("button", { type: "button", title: "Open it" }, make("span", { class: "name" }, at("model", each)), badge(at("bucket", each)), make("span", { class: "excerpt" }, samples.said(each)));
        button.addEventListener("click", () => turn(each));
        return button;
      });
      const more = others.length - 30;
      return [
        make("h3", {}, `${at("sample", row)} `, make("span", { class: "model" }, at("model", row) ?? "")),
        ...findings(samples, row, others.length ? make("div", { class: "part others" }, make("h4", {}, "What the others said"), ...buttons.slice(0, FIRST),
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
