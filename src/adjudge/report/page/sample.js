// One sample, opened: what failed and why, what is particular to its protocol, its answer, and the rest of its evidence.

// The limits of a check, as `explain` writes them.
const limitsOf = ({ observed }, slot) => {
  const parts = isNumber(observed) ? [`observed ${digits(observed)}`] : [], has = (name) => isNumber(slot[name]);
  if (has("low") && has("high")) parts.push(`allowed ${digits(slot.low)} to ${digits(slot.high)}`);
  else if (has("low")) parts.push(`allowed from ${digits(slot.low)}`);
  else if (has("high")) parts.push(`allowed up to ${digits(slot.high)}`);
  const beyond = [["below", "critical_low"], ["above", "critical_high"]].filter(([, name]) => has(name)).map(([word, name]) => `${word} ${digits(slot[name])}`);
  if (beyond.length) parts.push(`critical ${beyond.join(" or ")}`);
  return parts.join(", ");
};

// What an agent said of one reason, in its own words.
const wordsOf = (samples, row, place) => {
  const item = (name) => (samples.at(name, row) || [])[place] ?? null;
  const words = item("@reason_words"), quote = item("@reason_quotes");
  return [
    words === null ? null : make("p", { class: "note" }, `The judge: ${words}`),
    quote === null ? null : make("p", { class: "note" }, make("q", {}, quote), item("@reason_verified") ? " stands in the answer" : " does not stand in the answer; this reason is dropped"),
  ];
};

// Why: the checks that failed, those first that the verdict is attributed to.
const why = (samples, row) => {
  const reasons = samples.at("@reasons", row) || [], failed = samples.failed[row];
  const ranked = reasons.map(([position, size], place) => ({ position, size, place, atom: failed.find((atom) => atom.position === position) }));
  const ranks = new Map(ranked.map(({ position }, place) => [position, place]));
  const rest = failed.filter((atom) => !ranks.has(atom.position)).map((atom) => ({ position: atom.position, size: 1, place: -1, atom }));
  const every = [...ranked, ...rest], codeOf = ({ atom, position }) => (atom ? atom.code : samples.positions[position].rule.code), told = new Set();
  if (!every.length) return [make("p", { class: "note" }, "No check failed.")];
  // What happened, and once after those of one rule what should have been.
  const lines = every.flatMap((each, index) => {
    const { position, size, place, atom } = each, { rule, slot } = samples.positions[position], code = codeOf(each);
    const title = (rule.variants.find((variant) => variant.code === code) || rule).title, message = atom ? samples.message(atom, "f") : rule.title;
    const last = index === every.length - 1 || codeOf(every[index + 1]) !== code, tell = last && !told.has(code) && !message.includes(title);
    const line = make("li", { title: atom ? limitsOf(atom, slot) : null }, badge(atom ? atom.severity : "passed"), ` ${message} `,
      last && !tell ? make("code", {}, code) : null, size > 1 ? make("span", { class: "note" }, ` and ${size - 1} more like it`) : null, ...(place < 0 ? [] : wordsOf(samples, row, place)));
    if (!tell) return [line];
    told.add(code);
    return [line, make("li", { class: "rule" }, `should hold: ${title} `, make("code", {}, code))];
  });
  return [make("ul", { class: "atoms" }, ...lines)];
};

// What an agent other than the rules did here.
const judgeOf = (samples, row) => {
  const { agent } = samples.data, list = (name) => samples.at(name, row) || [];
  if (!agent) return null;
  const verified = list("@quotes_verified"), pairs = [];
  if (agent.language_model) pairs.push(["judge", agent.model]);
  if (list("@votes").length) pairs.push(["votes", list("@votes").join(", ")]);
  if (list("@refused").length) pairs.push(["answers refused", list("@refused").join(", ")]);
  if (agent.language_model && samples.at("@decided_by", row) === "rules") pairs.push(["decided by", "the rules; the judge gave no answer that holds"]);
  list("@quotes").forEach((quote, place) => pairs.push([verified[place] ? "quote, stands in the answer" : "quote, does not stand in the answer", quote]));
  return pairs.length ? make("div", { class: "part" }, make("h4", {}, "The judge"), facts(pairs)) : null;
};

const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const folded = (title, ...children) => make("details", {}, make("summary", {}, title), ...children);

const checklistOf = (samples, row) => {
  const { agent } = samples.data, statuses = samples.at("@status", row);
  if (!agent || !statuses) return null;
  const words = { p: "pass", f: "fail", u: "unknown" };
  const items = agent.items.map((title, place) => ({ title, status: statuses[place] })).sort((a, b) => "fup".indexOf(a.status) - "fup".indexOf(b.status));
  const count = (status) => items.filter((item) => item.status === status).length;
  const told = Object.entries(words).filter(([status]) => count(status)).map(([status, word]) => `${count(status)} ${word}`).join(" · ");
  return folded(`Checklist: ${told}`, make("ul", { class: "atoms" }, ...items.map(({ title, status }) => make("li", {}, badge(words[status]), ` ${title}`))));
};

const answerOf = (samples, row) => {
  const response = samples.at("response", row);
  if (typeof response !== "string" || inPanels(samples).has("response")) return null;
  const start = samples.at("start", row), end = samples.at("end", row), block = make("pre"), told = [];
  if (Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start < end) {
    const signs = Array.from(response);
    block.append(signs.slice(0, start).join(""), make("mark", {}, signs.slice(start, end).join("")), signs.slice(end).join(""));
    told.push("what was read is marked");
  } else block.append(response);
  const method = samples.at("method", row), repairs = samples.at("repairs", row), characters = samples.at("characters", row);
  if (method) told.push(`read from ${{ whole: "the whole text", fenced: "a fenced block", embedded: "an object in the text" }[method] || method}`);
  if (repairs) told.push(`repaired: ${String(repairs).replaceAll(",", ", ").replaceAll("_", " ")}`);
  else if (method) told.push("no repair was needed");
  if (isNumber(characters) && characters > Array.from(response).length) told.push(`the first ${Array.from(response).length.toLocaleString("en")} of ${characters.toLocaleString("en")} characters`);
  return make("div", { class: "part" }, make("h4", {}, "The answer, as it came"), response ? block : make("p", { class: "note" }, "The answer is an empty text."),
    told.length ? make("p", { class: "note" }, `${told.join("; ")}.`.replace(/^./, (sign) => sign.toUpperCase())) : null);
};

// Titles of the checks that passed, and how many were not applicable, or broke, for each reason.
const unfailed = (samples, row) => {
  const { data } = samples, passed = [], unchecked = new Map(), broken = new Map();
  samples.positions.forEach(({ rule, slot }, position) => {
    const outcome = data.outcomes[position][row];
    if (outcome === "p") passed.push(`${rule.title}${slot.field ? `: ${slot.field}` : ""}`);
    if (outcome === "n" || outcome === "e") {
      const atoms = data.unchecked[position], index = atoms.s.indexOf(row);
      const reason = index < 0 || atoms.w[index] < 0 ? "no reason given" : data.reasons[atoms.w[index]];
      if (reason !== data.not_asked) (outcome === "n" ? unchecked : broken).set(reason, [...((outcome === "n" ? unchecked : broken).get(reason) || []), rule.title]);
    }
  });
  return { passed, unchecked, broken };
};
const byReason = (reasons) => make("ul", { class: "passed" }, ...[...reasons].map(([reason, titles]) => make("li", {}, `${reason}: ${[...new Set(titles)].join("; ")}`)));
const total = (reasons) => [...reasons.values()].reduce((sum, titles) => sum + titles.length, 0);

// Everything else that the run holds of a sample, as names and texts.
const plainFacts = (samples, row) => {
  const elsewhere = new Set(["sample", "model", "bucket", "verdict", "response", "characters", "start", "end", "method", "repairs", ...inPanels(samples)]);
  return Object.keys(samples.columns).filter((name) => !name.startsWith("@") && !elsewhere.has(name)).map((name) => [name, samples.at(name, row)])
    .filter(([, value]) => !isEmpty(value)).map(([name, value]) => [name, plain(value).slice(0, 600)]);
};

// The evidence and the answer of a sample, in the order in which they are read; `others` stands between why and the rest.
const findings = (samples, row, others = null) => {
  const { passed, unchecked, broken } = unfailed(samples, row);
  const rest = plainFacts(samples, row), bucket = samples.at("bucket", row), verdict = format(samples.at("verdict", row));
  return [
    make("p", {}, badge(bucket), ...(verdict === bucket ? [] : [" verdict ", make("strong", {}, verdict.replaceAll("_", " "))])),
    ...why(samples, row),
    broken.size ? make("p", {}, badge("error"), ` ${total(broken)} checks broke; the instrument failed, not the model: ${[...broken.keys()].join("; ")}`) : null,
    judgeOf(samples, row),
    others,
    ...panels(samples, row),
    answerOf(samples, row),
    checklistOf(samples, row),
    passed.length ? folded(`${several(passed.length, "check")} passed`, make("ul", { class: "passed" }, ...passed.map((title) => make("li", {}, title)))) : null,
    unchecked.size ? folded(`${several(total(unchecked), "check")} not applicable`, byReason(unchecked)) : null,
    rest.length ? folded(`${several(rest.length, "more column")} of this sample`, facts(rest)) : null,
  ];
};
