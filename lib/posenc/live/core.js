// What the live figures share: the mathematics, in float64, and a few helpers for the page.
// Names and conventions are those of the Python library; the tests compare the numbers of the two.

const range = n => Array.from({ length: n }, (_, i) => i);
const sum = numbers => numbers.reduce((a, b) => a + b, 0);
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const transpose = A => A[0].map((_, j) => A.map(row => row[j]));
const product = (A, B) => { const columns = transpose(B); return A.map(row => columns.map(column => dot(row, column))); };
const added = (A, B) => A.map((row, i) => row.map((x, j) => x + B[i][j]));
const gap = (A, B) => Math.max(...A.flatMap((row, i) => row.map((x, j) => Math.abs(x - B[i][j]))));

// P B Pᵀ: rows and columns in the new order.
const reordered = (B, order) => order.map(i => order.map(j => B[i][j]));

// Every order of 0..n-1, the identity first, as symmetry.all_orders has them.
const orders = n => {
  const grow = (start, left) => left.length ? left.flatMap(i => grow([...start, i], left.filter(j => j !== i))) : [start];
  return grow([], range(n));
};

// A row with nothing to attend to gets zero weights.
const softmax = row => {
  const top = Math.max(...row);
  if (top === -Infinity) return row.map(() => 0);
  const powers = row.map(score => Math.exp(score - top)), total = sum(powers);
  return powers.map(power => power / total);
};

// One head of self-attention; `bias` is added to the scaled scores.
const attend = (x, { W_Q, W_K, W_V }, bias) => {
  const scores = product(product(x, W_Q), transpose(product(x, W_K))), scale = Math.sqrt(W_Q[0].length);
  const weights = scores.map((row, i) => softmax(row.map((score, j) => score / scale + (bias ? bias[i][j] : 0))));
  return { weights, output: product(weights, product(x, W_V)) };
};

// Frequencies and one row of the sinusoidal table, interleaved: columns 2i and 2i + 1 share a frequency.
const frequencies = (width, base) => range(width / 2).map(i => base ** (-2 * i / width));
const sinusoid = (p, width, base) => frequencies(width, base).flatMap(w => [Math.sin(p * w), Math.cos(p * w)]);

// The same pseudo-random numbers in [-1, 1) as numbers.draws in Python (the generator mulberry32).
const draws = seed => () => {
  seed = (seed + 0x6D2B79F5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
  t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2147483648 - 1;
};
const drawn = (next, rows, columns, scale) => range(rows).map(() => range(columns).map(() => scale * next()));

// Numbers as a reader wants them: a true minus, and powers of ten for what is nearly nothing.
const fixed = (x, digits = 2) => (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");
const small = x => {
  if (x === 0) return "0";
  if (Math.abs(x) >= 0.001) return fixed(x, 3);
  const [digits, power] = x.toExponential(0).split("e");
  return `${digits}·10${power.replace("+", "").replace(/./g, sign => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)])}`;
};

// Elements: h("p.note", { id: "a", onclick: f }, "text", child); s(…) makes parts of a drawing.
const element = space => (name, attributes = {}, ...children) => {
  const [tag, ...classes] = name.split(".");
  const node = document.createElementNS(space, tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  set(node, attributes);
  node.append(...children.flat());
  return node;
};
const set = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (value === false || value === null) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
};
const h = element("http://www.w3.org/1999/xhtml"), s = element("http://www.w3.org/2000/svg");

const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);
const labelled = (text, control) => h("label.field", {}, h("span", {}, text), control);
const select = (options, chosen, onpick) => {
  const list = h("select", { onchange: () => onpick(list.value) });
  for (const [value, text] of options) list.append(h("option", { value, selected: value === chosen }, text));
  return list;
};

// A row of switches of which one is on: radio buttons, so that the arrow keys work.
let groups = 0;
const switches = (title, options, chosen, onpick) => {
  const name = `group${groups++}`;
  return h("fieldset.switches", {}, h("legend", {}, title), h("div", {}, options.map(([value, ...text]) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onpick(value) }), h("span", {}, ...text)))));
};

// A slider between two buttons that take one step. `say` puts its value in words.
const slider = (title, least, most, value, say, onmove) => {
  const shown = h("output"), range = h("input", { type: "range", min: least, max: most, step: 1, value, "aria-label": title });
  const show = () => { shown.textContent = say(+range.value); set(range, { "aria-valuetext": say(+range.value) }); };
  const move = to => { range.value = to; show(); onmove(+range.value); };
  range.addEventListener("input", () => move(+range.value));
  show();
  const node = h("div.slider", {}, h("span.name", {}, title, " ", shown),
    button("−", () => move(+range.value - 1), { "aria-label": `${title}: one less` }), range,
    button("+", () => move(+range.value + 1), { "aria-label": `${title}: one more` }));
  return { node, move, get value() { return +range.value; } };
};

// Build every figure of this kind that stands on the page and has not begun. The elements live in a shadow
// tree, out of reach of the styles around; what stood there without scripts disappears behind it.
const start = (kind, build) => {
  for (const root of document.querySelectorAll(`.posenc-live[data-live="${kind}"]`)) {
    if (root.shadowRoot) continue;
    const said = h("p.said", { "aria-live": "polite" });
    const tell = (sentence, numbers) => {
      if (said.textContent !== sentence) said.textContent = sentence;
      root.dataset.numbers = JSON.stringify(numbers);
    };
    const frame = h("div.frame", { role: "group", "aria-label": root.dataset.label });
    frame.append(...build(JSON.parse(root.dataset.options), tell, root), said);
    root.attachShadow({ mode: "open" }).append(h("style", {}, STYLE), frame);
    // The arrow keys belong to the figure, not to the notebook or the page around it.
    root.addEventListener("keydown", event => event.ctrlKey || event.metaKey || event.stopPropagation());
    const resize = window.google?.colab?.output?.resizeIframeToContent;
    if (resize) new ResizeObserver(() => resize()).observe(frame);
  }
};
