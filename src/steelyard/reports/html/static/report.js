"use strict";
// Hovering or focusing an item lights up its place in the answer and its quote, and the other way round.
(() => {
  const light = (target, on) => {
    const marked = target.closest("[data-k]");
    const sample = marked && marked.closest("[data-sample]");
    if (!sample) return;
    const keys = new Set(marked.dataset.k.split(" "));
    for (const other of sample.querySelectorAll("[data-k]")) {
      if (other.dataset.k.split(" ").some((key) => keys.has(key))) other.classList.toggle("lit", on);
    }
  };
  const clear = () => document.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
  for (const name of ["mouseover", "focusin"]) {
    document.addEventListener(name, (event) => {
      clear();
      if (event.target instanceof Element) light(event.target, true);
    });
  }
  document.addEventListener("mouseout", clear);

  // Long texts start folded; following a link into one unfolds it.
  const words = document.body.dataset;
  const fold = (text, folded) => {
    text.classList.toggle("folded", folded);
    const button = text.nextElementSibling;
    button.textContent = folded ? words.more : words.less;
    button.setAttribute("aria-expanded", String(!folded));
  };
  for (const text of document.querySelectorAll(".text[data-fold]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    button.addEventListener("click", () => fold(text, !text.classList.contains("folded")));
    text.after(button);
    fold(text, true);
  }

  // A link to a sample opens it.
  const follow = () => {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return;
    }
    if (!target) return;
    const details = target.closest("details");
    if (details) details.open = true;
    // Links lead into the rendered text; where the raw one is shown instead, it gives way.
    const raw = target.closest(".md")?.parentElement.querySelector(".raw");
    if (raw) raw.open = false;
    const text = target.closest(".text.folded");
    if (text) fold(text, false);
    clear();
    light(target, true);
    target.scrollIntoView({ block: target.matches("details") ? "start" : "center" });
  };
  window.addEventListener("hashchange", follow);
  follow();
})();
