// One clock hand for each sine-cosine pair, beside the row of the table and the binary digits of the position.

start("dials", ({ width, most, start: first }, tell) => {
  const pairs = range(width / 2), around = range(7).map(i => i - 3);
  let base = 10000, playing = null;

  const clock = () => {
    const hand = s("g.hand", {}, s("line", { x1: 0, y1: 0, x2: 0, y2: -25 }), s("circle", { cx: 0, cy: -25, r: 3.5 }));
    const ticks = range(12).map(i => s("line.tick", { x1: 0, y1: -28, x2: 0, y2: i % 3 ? -26.5 : -25, transform: `rotate(${30 * i})` }));
    const picture = s("svg", { viewBox: "-30 -30 60 60", "aria-hidden": true }, s("circle.face", { r: 28.5 }), ticks, hand);
    return { picture, hand };
  };
  const dials = pairs.map(i => {
    const { picture, hand } = clock(), wave = h("span.wave"), sine = h("span.entry"), cosine = h("span.entry"), bit = h("span.bit");
    const node = h("div.dial", { role: "group" }, h("span.title", {}, `pair ${i}`), picture, wave, sine, cosine, bit);
    return { node, hand, wave, sine, cosine, bit };
  });
  const table = h("div.table", { "aria-hidden": true }, around.map(by => h("div.line", { "data-here": String(by === 0) }, h("span"), range(width).map(() => h("i")))));
  const digits = h("b.digits");
  const head = h("p.head", {}, "binary digits ", digits);

  const colour = (node, x) => set(node, { "--hue": x < 0 ? "var(--minus)" : "var(--plus)", "--much": `${Math.abs(x) * 48}%` });
  const entry = (node, name, x) => colour(node, x).replaceChildren(h("small", {}, name), ` ${fixed(x)}`);
  let before = first;
  const show = () => {
    const p = position.value, w = frequencies(width, base), row = sinusoid(p, width, base);
    const binary = p.toString(2).padStart(pairs.length, "0"), bits = pairs.map(i => (p >> i) & 1);
    pairs.forEach(i => {
      const { node, hand, wave, sine, cosine, bit } = dials[i];
      hand.style.transition = Math.abs(p - before) > 1 ? "none" : "";
      hand.style.transform = `rotate(${p * w[i]}rad)`;
      wave.textContent = `λ ${Number((2 * Math.PI / w[i]).toPrecision(3))}`;
      entry(sine, "sin", row[2 * i]);
      entry(cosine, "cos", row[2 * i + 1]);
      bit.replaceChildren(h("small", {}, `bit ${i}`), " ", h("b", {}, bits[i]));
      set(bit, { "data-on": String(bits[i] === 1) });
      set(node, { "aria-label": `pair ${i}` });
    });
    around.forEach((by, at) => {
      const line = table.children[at], inside = p + by >= 0 && p + by <= most;
      line.firstChild.textContent = inside ? p + by : "";
      const values = sinusoid(p + by, width, base);
      [...line.children].slice(1).forEach((node, j) => colour(node, inside ? values[j] : 0));
    });
    digits.textContent = binary;
    before = p;
    const turned = w.map(x => p * x), last = turned.length - 1;
    const turns = angle => angle < 2 * Math.PI ? `turned by ${fixed(angle * 180 / Math.PI, 1)} degrees` : `made ${fixed(angle / (2 * Math.PI), 1)} turns`;
    tell(`At position ${p} the first hand has ${turns(turned[0])} since position 0; the last has ${turns(turned[last])}. Bit 0 has flipped ${p} times, bit ${last} ${["never", "once"][p >> last]}.`,
      { position: p, base, row, bits, turned });
  };

  const position = slider("position", 0, most, first, String, show);
  const play = button("Play", () => {
    if (playing) { clearInterval(playing); playing = null; }
    else playing = setInterval(() => position.move(position.value === most ? 0 : position.value + 1), 400);
    play.textContent = playing ? "Stop" : "Play";
    play.getRootNode().querySelector(".said").setAttribute("aria-live", playing ? "off" : "polite");
  });
  const bases = switches("base", [["100", "100"], ["10000", "10 000"]], "10000", value => { base = +value; show(); });
  show();
  return [h("div.controls", {}, position.node, play, bases), head, h("div.dials", {}, dials.map(dial => dial.node)), table];
});
