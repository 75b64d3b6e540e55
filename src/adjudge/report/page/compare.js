// The samples of a comparison: who is right where, and two systems' answers and evidence beside each other.
const SIGNS = { passed: "✓", failed: "✗", abstained: "?", unparsed: "∅", errored: "!", missing: "–" };
const SAME = "no flip";

const exploreComparison = async (host) => {
  const data = await unpack("samples-data");
  if (data === null) {
    host.append(make("p", { class: "note" }, "This browser cannot unpack the samples; the first flips are listed below."));
    return;
  }
  const { n, systems, pairs, rows } = data, two = systems.length === 2;
  const stores = data.runs.map((each) => new Samples(each));
  const storeOf = (system) => stores[systems[system].run];
  const everyone = systems.map((_, system) => system);
  const having = (key) => everyone.filter((system) => rows[system][key] >= 0);
  const at = (name, system, key) => (rows[system][key] < 0 ? null : storeOf(system).at(name, rows[system][key]));
  const failedOf = (system, key) => (rows[system][key] < 0 ? [] : storeOf(system).failed[rows[system][key]]);
  const idOf = (key) => at("sample", having(key)[0], key);
  const trialOf = (key) => at("trial", having(key)[0], key);
  let sides = [0, 1];
  // Long names without the words with which all begin.
  const names = systems.map(({ name }) => name);
  const same = [...names[0]].findIndex((sign, place) => names.some((name) => name[place] !== sign));
  const cut = names[0].slice(0, Math.max(0, same)).search(/[^\p{L}\p{N}][\p{L}\p{N}]*$/u) + 1;
  const brief = names.map((name) => (cut > 3 && names.some(({ length }) => length > 9) ? `…${name.slice(cut)}` : name));

  // Who alone is right, by pair and sample.
  const ways = pairs.map((pair) => {
    const way = new Uint8Array(n);
    for (const key of pair.lost) way[key] = 1;
    for (const key of pair.gained) way[key] = 2;
    return way;
  });
  const wordsOfPair = ({ a, b }) => [`${systems[a].name} right, ${systems[b].name} wrong`, `${systems[b].name} right, ${systems[a].name} wrong`];
  const changes = new Map(pairs.flatMap((pair, place) => wordsOfPair(pair).map((words, way) => [words, (key) => ways[place][key] === way + 1])));
  const flips = Array.from({ length: n }, (_, key) => ways.reduce((sum, way) => sum + (way[key] > 0), 0));
  const change = (key) => (flips[key] === 0 ? SAME : two ? wordsOfPair(pairs[0])[ways[0][key] - 1] : `${flips[key]} of ${pairs.length} pairs flip`);
  const short = (key) => (flips[key] === 0 ? "" : two ? ["lost", "gained"][ways[0][key] - 1] : flips[key]);
  const badness = (key) => Math.max(...having(key).map((system) => storeOf(system).rank(rows[system][key])));
  const worst = (key) => {
    const failing = everyone.filter((system) => failedOf(system, key).length).sort((a, b) => storeOf(b).rank(rows[b][key]) - storeOf(a).rank(rows[a][key]));
    return failing.length ? failedOf(failing[0], key)[0].code : "";
  };
  const order = ranked(n, (key) => (two ? (3 - ways[0][key]) % 3 : flips[key]) * 1e11 + badness(key));

  const scores = two ? storeOf(0).shownScores().slice(0, 1).filter((name) => storeOf(1).columns[name]) : [];
  const sorted = (find) => [...new Set(stores.flatMap((store) => store.failed.flat().map(find)))].sort();
  const haystack = Array(n);
  const sign = (system, key) => {
    const bucket = at("bucket", system, key), words = `${systems[system].name}: ${bucket ?? "not judged"}`;
    if (two) return bucket ? badge(bucket) : "–";
    return make("button", { type: "button", class: `sign ${bucket ?? "none"}`, "data-system": system, title: words, "aria-label": words, tabindex: "-1" }, SIGNS[bucket] ?? "·");
  };
  // What all systems have in common can be filtered by; what a system made of a sample cannot.
  const isCommon = (name) => rows[0].every((_, key) => having(key).every((system) => at(name, system, key) === at(name, having(key)[0], key)));
  const slices = storeOf(0).data.slices.filter(isCommon).slice(0, 3);
  const isWord = (name) => ({ name, fits: (key, value) => String(at(name, having(key)[0], key)) === value });
  const chooseSides = (key, system) => {
    const pair = pairs.findIndex(({ a, b }, place) => ways[place][key] > 0 && (system === null || a === system || b === system));
    const judged = having(key);
    if (pair >= 0) sides = [pairs[pair].a, pairs[pair].b];
    else if (system !== null) sides = [judged.find((each) => each !== system) ?? system, system];
    else sides = judged.slice(0, 2);
  };

  const heading = (key, turn) => {
    const trial = trialOf(key);
    const pair = pairs.findIndex(({ a, b }) => sides.includes(a) && sides.includes(b));
    const way = pair < 0 ? 0 : ways[pair][key];
    const pick = (place, label) => {
      const box = make("select", { "aria-label": label }, ...having(key).map((system) => make("option", { value: system, selected: system === sides[place] }, systems[system].name)));
      box.addEventListener("change", () => { sides[place] = Number(box.value); turn(key); });
      return box;
    };
    return [
      make("h3", {}, `${idOf(key)} `, trial === null ? null : make("span", { class: "model" }, `trial ${trial}`)),
      make("p", {}, way ? badge(way === 1 ? "lost" : "gained") : null, way ? ` ${wordsOfPair(pairs[pair])[way - 1]}, by ${data.on}` : `No flip: by ${data.on} both are right, or both are wrong.`),
      two ? null : make("p", { class: "others" }, pick(0, "The system on the left"), " beside ", pick(1, "The system on the right")),
    ];
  };
  const told = (key) => {
    const codes = sides.map((system) => new Set(failedOf(system, key).map((atom) => atom.code)));
    const only = [0, 1].map((side) => [...codes[side]].filter((code) => !codes[1 - side].has(code)));
    const both = [...codes[0]].filter((code) => codes[1].has(code));
    const lines = [...sides.map((system, side) => [`only ${systems[system].name} fails`, only[side]]), ["both fail", both]].filter(([, list]) => list.length);
    if (!lines.length) return make("p", { class: "note" }, "Neither fails a check. Marked is what only one of the two has.");
    return make("p", { class: "told" }, ...lines.flatMap(([words, list], place) => [`${words} `, ...list.slice(0, 12).map((code) => make("code", {}, code)), list.length > 12 ? ` and ${list.length - 12} more ` : ""]), make("span", { class: "note" }, "Marked is what only one of the two has."));
  };

  host.style.setProperty("--least", `${systems.length * 34 + 330}px`);
  host.style.setProperty("--matrix", `${systems.length * 34 + 150}px`);
  const source = {
    n,
    order,
    heads: [
      { name: "sample", label: "id", width: two ? "minmax(124px, 1.6fr)" : "minmax(110px, 1.4fr)", slim: two ? "minmax(60px, 1fr)" : "minmax(72px, 240px)" },
      ...everyone.map((system) => ({ name: `system ${system}`, label: brief[system], title: systems[system].name, width: two ? "minmax(90px, 1fr)" : "30px", slim: two ? "minmax(76px, 27%)" : "30px" })),
      { name: "change", label: two ? "flip" : "flips", width: two ? "78px" : "60px", slim: two ? null : "48px", number: !two },
      ...scores.flatMap((name) => sides.map((side) => {
        const label = `${name.replace(/^score\./, "").replaceAll("_", " ")}, ${side ? "second" : "first"}`;
        return { name: `${name} ${side}`, label, width: `minmax(76px, ${Math.max(84, Math.min(146, 18 + 7 * label.length))}px)`, number: true };
      })),
      { name: "worst", label: "worst rule", width: "minmax(110px, 2fr)" },
    ],
    cell: (name, key) => {
      if (name === "sample") return idOf(key);
      if (name === "change") return short(key);
      if (name === "worst") return worst(key);
      if (name.startsWith("system ")) return at("bucket", Number(name.slice(7)), key);
      return at(name.slice(0, -2), Number(name.slice(-1)), key);
    },
    node: (name, key) => {
      if (name.startsWith("system ")) return sign(Number(name.slice(7)), key);
      if (name === "change" && two) return flips[key] ? badge(short(key)) : "";
      const trial = name === "sample" ? trialOf(key) : null;
      return name === "sample" ? make("span", {}, shortened(idOf(key)), trial === null ? null : ` · ${trial}`) : null;
    },
    text: (key) => (haystack[key] ??= having(key).map((system) => storeOf(system).text(rows[system][key])).join("\n")),
    filters: [
      { name: "change", label: "flipped or not", options: [...changes.keys(), SAME].slice(0, 1000), fits: (key, value) => (value === SAME ? flips[key] === 0 : changes.has(value) && changes.get(value)(key)) },
      ...(two ? everyone : []).map((system) => ({ name: `bucket${system}`, label: `every bucket of ${brief[system]}`, options: storeOf(system).words("bucket"), fits: (key, value) => at("bucket", system, key) === value })),
      { name: "rule", label: "every rule", options: sorted((atom) => atom.code), fits: (key, value) => everyone.some((system) => failedOf(system, key).some((atom) => atom.code === value)) },
      { name: "severity", label: "every severity", options: sorted((atom) => atom.severity), fits: (key, value) => everyone.some((system) => failedOf(system, key).some((atom) => atom.severity === value)) },
      ...slices.map((name) => ({ ...isWord(name), label: `every ${name.replace(/^(meta\.|rating:)/, "").replaceAll("_", " ")}`, options: storeOf(0).words(name) })),
    ],
    link: (key) => [["sample", idOf(key)], ...(trialOf(key) === null ? [] : [["trial", trialOf(key)]]), ["a", systems[sides[0]].name], ["b", systems[sides[1]].name]],
    row: (parts) => {
      const named = ["a", "b"].map((name) => systems.findIndex((system) => system.name === parts.get(name)));
      for (let key = 0; key < n; key += 1) {
        if (idOf(key) !== parts.get("sample") || (parts.has("trial") && String(trialOf(key)) !== parts.get("trial"))) continue;
        if (named.every((system) => system >= 0 && rows[system][key] >= 0)) sides = named;
        else chooseSides(key, null);
        return key;
      }
      return -1;
    },
    choose: (key, target) => {
      const cell = target && target.closest("[data-system]");
      if (!two) chooseSides(key, cell ? Number(cell.dataset.system) : null);
    },
    open: (key, turn) => {
      const columns = sides.map((system) => make("div", {}, make("h4", { class: "side" }, systems[system].name),
        ...(rows[system][key] < 0 ? [make("p", { class: "note" }, "It was not judged on this sample.")] : findings(storeOf(system), rows[system][key])).filter((part) => part !== null && part !== undefined)));
      markDifferences(...columns);
      return [...heading(key, turn), told(key), alignParts(...columns, sides.map((system) => systems[system].name))];
    },
    counted: (count, sort) => {
      const less = n < data.total ? `; ${(data.total - n).toLocaleString("en")} more are in the runs` : "";
      return `${count.toLocaleString("en")} of ${n.toLocaleString("en")} shared samples, flips first${sort ? " unless sorted" : ""}${less}.`;
    },
  };
  explorer(host, source);
  whenIdle(n, source.text);
  const buckets = Object.keys(SIGNS).filter((bucket) => stores.some((store) => store.words("bucket").includes(bucket)));
  if (!two) host.append(make("p", { class: "signs" }, ...buckets.map((bucket) => make("span", {}, make("span", { class: `sign ${bucket}`, "aria-hidden": "true" }, SIGNS[bucket]), bucket))));
};
if (document.getElementById("samples-data")) {
  const place = document.getElementById("explorer");
  place.classList.add(place.dataset.systems === "2" ? "pair" : "matrix");
  exploreComparison(place);
}
