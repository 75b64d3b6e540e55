// What two nodes that show the same things of two systems do not have in common, marked. Texts stay texts.
const WORDS = /\s+|[\p{L}\p{N}_]+(?:\.\p{N}+)?|[^\s\p{L}\p{N}_]/gu;
const MOST_CELLS = 4e6;

// For the words of two texts, which of them the other does not have at that place: a longest common subsequence, or,
// where that is too much work, which of them the other has nowhere.
const onlyIn = (left, right) => {
  let start = 0, end = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  while (end < left.length - start && end < right.length - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
  const flags = [left, right].map((words) => words.map((word, place) => place >= start && place < words.length - end));
  const [a, b] = [left, right].map((words) => words.slice(start, words.length - end));
  if ((a.length + 1) * (b.length + 1) > MOST_CELLS) {
    const known = [new Set(b), new Set(a)];
    [left, right].forEach((words, side) => words.forEach((word, place) => { flags[side][place] &&= !known[side].has(word); }));
    return flags;
  }
  const wide = b.length + 1, lengths = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * wide + j] = a[i] === b[j] ? lengths[(i + 1) * wide + j + 1] + 1 : Math.max(lengths[(i + 1) * wide + j], lengths[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      flags[0][start + i] = flags[1][start + j] = false;
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * wide + j] >= lengths[i * wide + j + 1]) i += 1;
    else j += 1;
  }
  return flags;
};

// Wrap the flagged words of a node in marks; what is marked already stays so.
const markWords = (node, words, flags) => {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  let word = 0, inside = 0;
  for (const text of texts) {
    const pieces = [];
    let piece = "", marked = false;
    const flush = () => {
      if (piece) pieces.push(marked ? make("mark", { class: "only" }, piece) : piece);
      piece = "";
    };
    for (let at = 0; at < text.data.length;) {
      const rest = Math.min(words[word].length - inside, text.data.length - at);
      if (flags[word] !== marked) { flush(); marked = flags[word]; }
      piece += text.data.slice(at, at + rest);
      at += rest;
      inside += rest;
      if (inside === words[word].length) { word += 1; inside = 0; }
    }
    flush();
    if (pieces.some((each) => typeof each !== "string")) text.replaceWith(...pieces);
  }
};

const markTexts = (left, right) => {
  if (left.textContent === right.textContent) return;
  const texts = [left, right].map((node) => node.textContent.match(WORDS) || []);
  const solid = onlyIn(...texts.map((words) => words.filter((word) => word.trim() !== "")));
  [left, right].forEach((node, side) => {
    let place = 0;
    const flags = texts[side].map((word) => (word.trim() === "" ? null : solid[side][place++]));
    markWords(node, texts[side], flags.map((flag, at) => flag ?? (flags[at - 1] === true && flags[at + 1] === true)));
  });
};

// The nodes that a selector finds, by what they are about: the heading over them, their name, and how often it came before.
const named = (root, selector, name) => {
  const nodes = new Map();
  for (const node of root.querySelectorAll(selector)) {
    const part = node.closest(".part, .beside > div"), heading = part ? part.querySelector("h4, h5") : null;
    const about = `${heading && heading.firstChild ? heading.firstChild.textContent : ""}\n${name(node)}`;
    let number = 0;
    while (nodes.has(`${about}\n${number}`)) number += 1;
    nodes.set(`${about}\n${number}`, node);
  }
  return nodes;
};
const inBoth = (left, right, selector, name, mark) => {
  const others = named(right, selector, name);
  for (const [about, node] of named(left, selector, name)) if (others.has(about)) mark(node, others.get(about));
};

const markDifferences = (left, right) => {
  inBoth(left, right, "pre, ol.said > li", (node) => node.tagName, markTexts);
  inBoth(left, right, "dd", (node) => node.previousElementSibling.textContent, markTexts);
  inBoth(left, right, "tbody tr", (node) => node.cells[0].textContent, (a, b) => {
    for (let place = 1; place < Math.min(a.cells.length, b.cells.length); place += 1) {
      if (a.cells[place].textContent !== b.cells[place].textContent) for (const row of [a, b]) row.cells[place].classList.add("only");
    }
  });
  for (const [side, other] of [[left, right], [right, left]]) {
    const known = new Set([...other.querySelectorAll(".atoms li")].map((node) => node.textContent));
    for (const node of side.querySelectorAll(".atoms li")) if (!known.has(node.textContent)) node.classList.add("only");
  }
};

// Two lists of parts side by side, those that are about the same thing on one line.
const keyOf = (node) => {
  if (node.matches("ul.atoms, p.note")) return "why";
  const heading = node.querySelector(":scope > h4, :scope > summary");
  return `${node.tagName} ${heading ? heading.textContent.replace(/\d[\d,]*|:.*/g, "") : ""}`;
};
const alignParts = (left, right, names) => {
  const grid = make("div", { class: "sides" }), lists = [[...left.children], [...right.children]];
  const put = (side, node) => grid.append(make("div", { class: side ? "second" : "first", role: "group", "aria-label": names[side], "data-side": names[side] }, node));
  while (lists[0].length || lists[1].length) {
    const keys = lists.map((nodes) => nodes.map(keyOf));
    const both = keys[0][0] === keys[1][0];
    put(0, both || !keys[1].includes(keys[0][0]) ? lists[0].shift() : null);
    put(1, both || grid.lastChild.childNodes.length === 0 ? lists[1].shift() : null);
  }
  return grid;
};
