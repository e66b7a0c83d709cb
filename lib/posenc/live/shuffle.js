// Tokens that change places under attention: what travels with them, and what does not.

const attentionOf = (data, words, order, positions) => {
  const codes = words.map((_, p) => positions === "none" ? [0, 0, 0, 0] : sinusoid(p, 4, 10000));
  const vectors = words.map(word => data.vectors[word]), first = added(vectors, codes);
  const here = positions === "slots" ? added(order.map(t => vectors[t]), codes) : order.map(t => first[t]);
  const now = attend(here, data), moved = order.map(t => attend(first, data).output[t]);
  return { weights: now.weights, output: now.output, moved, gap: gap(now.output, moved) };
};

start("shuffle", (data, tell) => {
  let sentence = data.sentences[1], positions = "none", order = [], words = [], names = [], chosen = 0, dragged = null;
  let chips = [], rows = [], again = [], cells = [], codes = [], strips = [], signs = [];
  const next = draws(7);

  const cell = (kind, x, y, ...inside) => h(`div.at.${kind}`, { "--x": x, "--y": y }, ...inside);
  const put = (node, x, y) => set(node, { "--x": x, "--y": y });
  const colours = node => range(4).map(() => node.appendChild(h("i")));
  const paint = (bits, numbers, most) => bits.forEach((bit, j) => set(bit, {
    "--hue": numbers[j] < 0 ? "var(--minus)" : "var(--plus)", "--much": `${Math.min(1, Math.abs(numbers[j]) / most) * 85}%`, title: fixed(numbers[j]) }));

  const stage = h("div.stage"), table = h("div.sr");
  const verdict = h("p.verdict.num");

  const lay = () => {
    words = sentence.split(" ");
    const seen = {};
    names = words.map(word => {
      seen[word] = (seen[word] || 0) + 1;
      return words.filter(other => other === word).length > 1 ? word + "₀₁₂₃"[seen[word]] : word;
    });
    order = range(words.length);
    chosen = 0;
    chips = names.map((name, t) => h("button.chip.at", { type: "button", onclick: () => { chosen = t; show(); }, onkeydown: event => key(event, t), onpointerdown: event => grab(event, t) }, name));
    rows = names.map(name => cell("label", 0, 0, name));
    again = names.map(name => cell("label.again", 0, 0, name));
    cells = names.map(() => names.map(() => cell("weight", 0, 0)));
    codes = names.map((_, p) => cell("code", p, 0, h("b", {}, `PE(${p})`), h("span.bits")));
    codes.forEach((node, p) => paint(colours(node.lastChild), sinusoid(p, 4, 10000), 1));
    strips = ["now", "then"].map(kind => names.map(() => { const node = cell(`strip.${kind}`, 0, 0, h("span.bits")); node.bits = colours(node.lastChild); return node; }));
    signs = names.map(() => cell("sign", 0, 0));
    const hidden = h("div", { "aria-hidden": true }, h("span.corner", {}, "query ↓  key →"), h("span.head.now", {}, "f(PX)"), h("span.head.then", {}, "P f(X)"),
      rows, again, cells.flat(), codes, strips.flat(), signs);
    set(stage, { "--n": words.length }).replaceChildren(hidden, h("div", { role: "group", "aria-label": "Tokens in their slots. Drag one, or move it with the left and right arrow keys." }, chips), table);
    show();
  };

  const show = () => {
    const result = attentionOf(data, words, order, positions), n = words.length, same = result.gap < 1e-9;
    set(stage, { "data-positions": positions });
    order.forEach((t, place) => {
      set(put(chips[t], place, 0), { "aria-label": `${names[t]}, slot ${place + 1} of ${n}`, "aria-pressed": String(t === chosen) });
      put(rows[t], 0, place);
      put(again[t], 0, place);
      put(codes[positions === "travel" ? t : place], place, 0);
      order.forEach((u, across) => {
        const weight = result.weights[place][across], node = put(cells[t][u], across, place);
        node.textContent = fixed(weight).replace(/^0/, "");
        set(node, { "--much": `${70 * weight}%` });
      });
      strips.forEach((list, which) => { put(list[t], 0, place); paint(list[t].bits, (which ? result.moved : result.output)[place], 1.2); });
      const equal = gap([result.output[place]], [result.moved[place]]) < 1e-9;
      set(put(signs[t], 0, place), { "data-equal": String(equal) }).textContent = equal ? "=" : "≠";
    });
    verdict.replaceChildren("largest |f(PX) − P f(X)| = ", h("b", { "data-equal": String(same) }, small(result.gap)));
    table.replaceChildren(h("table", {}, h("caption", {}, "Attention weights and output rows"),
      h("tr", {}, h("th", { scope: "col" }, "query"), order.map(t => h("th", { scope: "col" }, `key ${names[t]}`)), h("th", { scope: "col" }, "output row")),
      order.map((t, place) => h("tr", {}, h("th", { scope: "row" }, names[t]), result.weights[place].map(weight => h("td", {}, fixed(weight))),
        h("td", {}, result.output[place].map(x => fixed(x)).join(", "))))));
    tell(sentenceFor(result, same), { sentence, order, positions, weights: result.weights, output: result.output, moved: result.moved, gap: result.gap });
  };

  const sentenceFor = (result, same) => {
    const twin = words.findIndex((word, t) => words.indexOf(word) < t), other = words.indexOf(words[twin]);
    const twins = twin < 0 ? "" : gap([result.output[order.indexOf(twin)]], [result.output[order.indexOf(other)]]) < 1e-9
      ? ` The two “${words[twin]}” rows are equal.` : ` The two “${words[twin]}” rows differ.`;
    if (order.every((t, place) => t === place)) return `The tokens stand in their first order: move one.${twins}`;
    if (positions === "none") return `Every weight and every output row has moved with its token; nothing new was computed.${twins}`;
    if (positions === "travel") return `The codes moved with their tokens, and so did every output row: attention sees codes, not storage.${twins}`;
    return same ? `The outputs did not change.${twins}` : `The codes stayed in their slots, so the tokens meet other codes: weights and output rows are new ones.${twins}`;
  };

  const move = (t, place) => {
    if (place < 0 || place >= order.length || order[place] === t) return;
    order = order.filter(u => u !== t);
    order.splice(place, 0, t);
    show();
  };
  // The tab key meets the tokens from left to right, so their elements follow the order.
  const settle = () => { order.forEach(t => chips[t].parentNode.append(chips[t])); };
  const step = by => { move(chosen, order.indexOf(chosen) + by); settle(); };
  const key = (event, t) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    chosen = t;
    step(by);
    show();
    chips[t].focus();
  };
  const grab = (event, t) => {
    const chip = chips[t], size = chip.offsetWidth, from = event.clientX, start = order.indexOf(t);
    chosen = t;
    chip.focus();
    chip.setPointerCapture(event.pointerId);
    const follow = moving => {
      const by = moving.clientX - from;
      move(t, Math.max(0, Math.min(order.length - 1, Math.round(start + by / size))));
      set(chip, { "--drag": `${by - (order.indexOf(t) - start) * size}px`, "data-dragged": true });
    };
    const drop = () => {
      chip.removeEventListener("pointermove", follow);
      set(chip, { "--drag": "0px", "data-dragged": false });
      settle();
      chip.focus();
    };
    chip.addEventListener("pointermove", follow);
    chip.addEventListener("lostpointercapture", drop, { once: true });
    show();
  };
  const shuffle = () => {
    const before = order.join();
    while (order.join() === before) for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor((next() + 1) / 2 * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    show();
    settle();
  };

  const controls = h("div.controls", {},
    labelled("sentence", select(data.sentences.map(text => [text, text]), sentence, text => { sentence = text; lay(); })),
    button("Shuffle", shuffle), button("First order", () => { order = range(words.length); show(); settle(); }),
    h("div.pair", { role: "group", "aria-label": "Move the chosen token" }, button("←", () => step(-1), { "aria-label": "Move the chosen token left" }), button("→", () => step(1), { "aria-label": "Move the chosen token right" })));
  const modes = h("div.controls", {}, switches("position codes", [["none", "none"], ["slots", "stay in their slots"], ["travel", "travel with their tokens"]], positions, value => { positions = value; show(); }));
  lay();
  return [controls, modes, stage, verdict];
});
