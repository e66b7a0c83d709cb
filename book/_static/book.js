// Small services to readers who use a keyboard, follow a link into a fold, or print.

// What scrolls sideways can be reached by keyboard; what fits is not a stop on the way.
function markScrollers() {
  for (const box of document.querySelectorAll("div.math, figure .view, .pst-scrollable-table-container")) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// On a phone a proof takes one line until it is asked for.
function foldProofs() {
  if (!matchMedia("(max-width: 600px)").matches) return;
  for (const proof of document.querySelectorAll("details.box-proof")) proof.open = false;
}

// A link to something inside a fold, or to a fold, opens it.
function openFolds() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  let fold = target && target.closest("details:not([open])");
  if (!fold) return;
  for (; fold; fold = fold.parentElement.closest("details:not([open])")) fold.open = true;
  target.scrollIntoView();
}

// Paper has no folds.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("article details:not([open])")];
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false;
});

addEventListener("DOMContentLoaded", () => {
  foldProofs();
  markScrollers();
  openFolds();
  if (document.fonts) document.fonts.ready.then(markScrollers);
});
addEventListener("resize", markScrollers);
addEventListener("hashchange", openFolds);
document.addEventListener("toggle", markScrollers, true);
