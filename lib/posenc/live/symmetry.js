// A bias on the scores, and the reorderings that attention still cannot see under it: P B Pᵀ − B = c 1ᵀ.

// What must be added to each row of B to give P B Pᵀ, or null where no constant does.
const constants = (B, order) => reordered(B, order).map((row, i) => {
  const finite = row.map((x, j) => [x, B[i][j]]).filter(pair => pair.some(x => x !== -Infinity));
  if (finite.some(pair => pair.includes(-Infinity))) return null;
  const steps = finite.map(([after, before]) => after - before);
  return steps.every(step => Math.abs(step - steps[0]) < 1e-9) ? steps[0] ?? 0 : null;
});
const unseen = (B, order) => constants(B, order).every(c => c !== null);
const presets = {
  none: () => () => 0,
  causal: () => (i, j) => j > i ? -Infinity : 0,
  distance: () => (i, j) => -Math.abs(i - j),
  signed: () => (i, j) => j - i,
  cyclic: n => (i, j) => (j - i + n) % n,
  random: (n, next) => () => Math.round(2.5 * next()),
};

start("symmetry", (data, tell, root) => {
  let n = 4, B = [], preset = "distance", brush = 1, seed = 1, chosen = 0, painting = false, tiles = [], all = [];
  const text = x => x === -Infinity ? "−∞" : String(x).replace("-", "−");
  const spoken = x => x === -Infinity ? "forbidden" : text(x);
  const hue = x => x === -Infinity ? { "--hue": "var(--ink)", "--much": "25%" } : { "--hue": x < 0 ? "var(--minus)" : "var(--plus)", "--much": `${Math.min(1, Math.abs(x) / 4) * 60}%` };

  const editor = h("div.matrix", { role: "group", "aria-label": "The bias B. Press a cell to paint it; the arrow keys move between cells." });
  const after = h("div.matrix.plain"), difference = h("div.matrix.plain");
  const board = h("div.tiles"), count = h("p.count");

  const cellAt = (i, j) => editor.children[i * n + j];
  const paint = (i, j) => {
    if (B[i][j] === brush) return;
    B[i][j] = brush;
    preset = "";
    show();
  };
  const walk = (event, i, j) => {
    const [di, dj] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (di === undefined) return;
    event.preventDefault();
    const to = cellAt(Math.max(0, Math.min(n - 1, i + di)), Math.max(0, Math.min(n - 1, j + dj)));
    for (const cell of editor.children) cell.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  editor.addEventListener("pointermove", event => {
    if (!painting) return;
    const at = [...editor.children].indexOf(root.shadowRoot.elementFromPoint(event.clientX, event.clientY));
    if (at >= 0) paint(Math.floor(at / n), at % n);
  });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => { painting = false; });

  const fill = name => {
    preset = name;
    if (name === "random") seed += 1;
    const entry = presets[name](n, draws(seed));
    B = range(n).map(i => range(n).map(j => entry(i, j)));
  };
  const lay = () => {
    all = orders(n);
    chosen = all.length - 1;
    fill(preset || "distance");
    for (const node of [editor, after, difference]) set(node, { "--n": n });
    editor.replaceChildren(...range(n * n).map(at => {
      const i = Math.floor(at / n), j = at % n;
      return h("button", { type: "button", tabindex: at ? -1 : 0, onkeydown: event => walk(event, i, j), onclick: () => paint(i, j),
        onpointerdown: event => { painting = true; event.target.releasePointerCapture(event.pointerId); paint(i, j); } });
    }));
    const name = `order${groups++}`;
    tiles = all.map((order, at) => {
      const pick = h("input", { type: "radio", name, checked: at === chosen, onchange: () => { chosen = at; show(); } });
      const node = h("label.tile", {}, pick, h("span", {}, order.join("")));
      node.pick = pick;
      return node;
    });
    set(board, { "--across": n === 4 ? 8 : 12, "--narrow": n === 4 ? 6 : 6 }).replaceChildren(h("fieldset", {}, h("legend", {}, "Every order of the places; those that stay unseen are lit. Choose one to look at it."), h("div.grid", {}, tiles)));
    show();
  };

  const show = () => {
    const kept = all.filter(order => unseen(B, order)), order = all[chosen], moved = reordered(B, order), c = constants(B, order);
    range(n * n).forEach(at => {
      const i = Math.floor(at / n), j = at % n, cell = editor.children[at];
      set(cell, { ...hue(B[i][j]), "aria-label": `query ${i}, key ${j}: ${spoken(B[i][j])}` }).textContent = text(B[i][j]);
    });
    after.replaceChildren(...moved.flat().map(x => h("span", hue(x), text(x))));
    difference.replaceChildren(...moved.flatMap((row, i) => row.map((x, j) => {
      const by = x === B[i][j] ? 0 : x - B[i][j];
      return h("span", { "data-row": String(c[i] !== null), ...hue(0) }, by === Infinity ? "∞" : text(by));
    })));
    set(after, { role: "img", "aria-label": `P B P transposed for the order ${order.join(" ")}` });
    set(difference, { role: "img", "aria-label": `P B P transposed minus B. ${c.map((x, i) => `Row ${i} ${x === null ? "is not constant" : `is ${text(x)}`}`).join(". ")}.` });
    tiles.forEach((tile, at) => {
      const lit = kept.includes(all[at]);
      set(tile, { "data-lit": String(lit) });
      set(tile.pick, { "aria-label": `${all[at].join(" ")}: ${lit ? "unseen" : "seen"}` });
    });
    for (const [name, node] of Object.entries(buttons)) set(node, { "aria-pressed": String(name === preset) });
    // The theorem, tried on random tokens.
    const x = data.tokens.slice(0, n), first = attend(x, data, B).output, now = attend(order.map(t => x[t]), data, B).output;
    const measured = gap(now, order.map(t => first[t])), lit = unseen(B, order), shown = order.join(" ");
    count.replaceChildren(h("b", {}, String(kept.length)), ` of ${all.length} orders ${kept.length === 1 ? "stays" : "stay"} unseen`);
    tell(`Under this bias attention cannot see ${kept.length} of ${all.length} orders${kept.length === 1 ? ", the first one" : ""}. The order ${shown} ${lit ? "is unseen: every row of P B Pᵀ − B is constant" : "is seen: not every row of P B Pᵀ − B is constant"}. Measured on random tokens, |f(PX) − P f(X)| is ${small(measured)}.`,
      { n, bias: B.map(row => row.map(entry => entry === -Infinity ? null : entry)), order, kept, count: kept.length, unseen: lit, gap: measured });
  };

  const named = { none: "none", causal: "causal mask", distance: "−|i − j|", signed: "−(i − j)", cyclic: "cyclic", random: "random" };
  const buttons = Object.fromEntries(Object.entries(named).map(([name, shown]) => [name, button(shown, () => { fill(name); show(); })]));
  const values = [["-2", "−2"], ["-1", "−1"], ["0", "0"], ["1", "1"], ["2", "2"], ["-Infinity", "−∞"]];
  lay();
  return [
    h("div.controls", {}, h("div.presets", { role: "group", "aria-label": "Fill the bias" }, Object.values(buttons)), switches("tokens", [["4", "4"], ["5", "5"]], "4", value => { n = +value; lay(); })),
    h("div.matrices", {}, h("div", {}, h("p.title", {}, "B"), editor, switches("paint with", values, "1", value => { brush = +value; })),
      h("div.two", {}, h("div", {}, h("p.title", {}, "P B Pᵀ"), after), h("div", {}, h("p.title", {}, "P B Pᵀ − B"), difference), count)),
    board];
});
