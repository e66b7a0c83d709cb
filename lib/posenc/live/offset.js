// Two codes that keep their distance: what their product does when both move, and how it falls with the distance.

// The rows x M of many codes x: M = W_Q W_Kᵀ is never formed, since a code meets W_Q and W_K in turn.
const maps = (between, width, seed) => {
  const next = draws(seed), head = 16;
  if (between === "nothing") return [x => x, x => x];
  if (between === "random") {
    const scale = Math.sqrt(0.9 / Math.sqrt(head)), W_Q = drawn(next, width, head, scale), W_K = drawn(next, width, head, scale);
    return [x => product([x], W_Q)[0], x => product([x], W_K)[0]];
  }
  const a = range(width / 2).map(() => [next(), next()]);
  return [x => x, x => a.flatMap(([c, d], i) => [c * x[2 * i] + d * x[2 * i + 1], c * x[2 * i + 1] - d * x[2 * i]])];
};
const score = ([query, key], p, k, width, base) => dot(query(sinusoid(p, width, base)), key(sinusoid(p + k, width, base))) / (width / 2);
const kernel = (k, width, base) => sum(frequencies(width, base).map(w => Math.cos(k * w))) / (width / 2);
const EULER = 0.5772156649015329;
const law = (k, base) => 1 - (Math.log(k) + EULER) / Math.log(base);

start("offset", ({ most, offsets, position: p0, offset: k0 }, tell) => {
  let width = 32, base = 10000, between = "nothing", seed = 1;
  const W = 296, H = 190, left = 34, bottom = 30, top = 8, right = 8, low = -1.1, high = 1.1;
  const y = value => top + (high - Math.max(low, Math.min(high, value))) / (high - low) * (H - top - bottom);
  const xp = p => left + p / most * (W - left - right), xk = k => left + Math.log(k) / Math.log(1000) * (W - left - right);
  const path = points => "M" + points.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L");

  const chart = (label, ticks, place) => {
    const curve = s("path.curve"), line = s("path.law"), mark = s("circle.mark", { r: 5 }), rule = s("line.rule", { y1: top, y2: H - bottom });
    const grid = [-1, 0, 1].flatMap(v => [s("line.grid", { x1: left, x2: W - right, y1: y(v), y2: y(v) }), s("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, fixed(v, 0))]);
    const axis = ticks.map(v => s("text", { x: place(v), y: H - bottom + 15, "text-anchor": v === ticks[ticks.length - 1] ? "end" : "middle" }, String(v)));
    const name = s("text", { x: (left + W - right) / 2, y: H - 3, "text-anchor": "middle" }, label);
    const picture = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" }, grid, axis, name, rule, line, curve, mark);
    return { picture, curve, line, mark, rule };
  };
  const still = chart("position p", [0, 50, 100, 150, 200], xp), fall = chart("offset k", [1, 10, 100, 1000], xk);
  const titles = [h("p.title", {}), h("p.title", {}, "PE(p)·PE(p + k) ÷ (D/2), and the law ", h("span.dash", {}, "– –"))];

  let drawnFor = "", fallenFor = "", scores = [];
  const show = () => {
    const p = position.value, k = offsets[offset.value], pair = maps(between, width, seed);
    const asked = [k, width, base, between, seed].join();
    if (asked !== drawnFor) scores = range(most + 1).map(q => score(pair, q, k, width, base));
    drawnFor = asked;
    const value = scores[p], alike = kernel(k, width, base), predicted = law(k, base), spread = Math.max(...scores) - Math.min(...scores);
    set(still.curve, { d: path(scores.map((v, q) => [xp(q), y(v)])) });
    set(still.mark, { cx: xp(p), cy: y(value) });
    set(still.rule, { x1: xp(p), x2: xp(p) });
    if ([width, base].join() !== fallenFor) {
      fallenFor = [width, base].join();
      set(fall.curve, { d: path(range(1000).map(i => [xk(i + 1), y(kernel(i + 1, width, base))])) });
      set(fall.line, { d: path([1, Math.min(1000, base)].map(v => [xk(v), y(law(v, base))])) });
    }
    set(fall.mark, { cx: xk(k), cy: y(alike) });
    set(fall.rule, { x1: xk(k), x2: xk(k) });
    titles[0].textContent = `${between === "nothing" ? "PE(p)·PE(p + k)" : "PE(p)ᵀ M PE(p + k)"} ÷ (D/2)`;
    set(still.picture, { "aria-label": `Score against position for offset ${k}: between ${fixed(Math.min(...scores))} and ${fixed(Math.max(...scores))}.` });
    set(fall.picture, { "aria-label": `Dot product against offset on a logarithmic axis. At offset ${k} it is ${fixed(alike)}; the logarithmic law says ${fixed(predicted)}.` });
    again.disabled = between === "nothing";
    const moved = spread < 1e-9 ? "It stands still" : "It moves";
    const what = between === "nothing" ? "The dot product" : between === "random" ? "With a random matrix between the codes, the score" : "With a turn and a stretch of each pair between the codes, the score";
    const against = between === "nothing" ? ` At offset ${k} the logarithmic law says ${fixed(predicted, 3)}.` : "";
    tell(`${what} at position ${p} and offset ${k} is ${fixed(value, 3)}. ${moved}: over all positions up to ${most} its range is ${small(spread)}.${against}`,
      { position: p, offset: k, width, base, between, seed, score: value, spread, kernel: alike, law: predicted });
  };

  const position = slider("position p", 0, most, p0, String, show);
  const offset = slider("offset k", 0, offsets.length - 1, offsets.indexOf(k0), i => String(offsets[i]), show);
  const again = button("Draw another", () => { seed += 1; show(); });
  const choices = h("div.controls", {}, switches("between the codes", [["nothing", "nothing"], ["random", "random W", h("sub", {}, "Q"), "W", h("sub", {}, "K"), "ᵀ"], ["turns", "turns aI + bJ"]], between, value => { between = value; show(); }), again);
  const sizes = h("div.controls", {}, switches("width D", [16, 32, 128, 512].map(n => [String(n), String(n)]), "32", value => { width = +value; show(); }),
      switches("base", [["100", "100"], ["10000", "10 000"], ["1000000", "1 000 000"]], "10000", value => { base = +value; show(); }));
  show();
  const charts = h("div.charts", {}, h("div", {}, titles[0], still.picture), h("div", {}, titles[1], fall.picture));
  return [h("div.controls", {}, position.node, offset.node), choices, charts, sizes];
});
