"use strict";
// A label is one POST; the next item takes this one's place without a new page. Without script the forms do the same.
(() => {
  let busy = false;
  const show = (html, address) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const next = fresh.getElementById("labelling");
    const old = document.getElementById("labelling");
    if (!next) {
      location.assign(address);
      return;
    }
    old.replaceWith(document.adoptNode(next));
    document.title = fresh.title;
    history.pushState(null, "", address);
    window.scrollTo(0, 0);
  };
  const load = async (address, settings) => {
    if (busy) return;
    busy = true;
    try {
      const answer = await fetch(address, { credentials: "same-origin", ...settings });
      show(await answer.text(), answer.url);
    } catch {
      location.reload();
    } finally {
      busy = false;
    }
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.closest("#labelling")) return;
    event.preventDefault();
    const data = new URLSearchParams(new FormData(form));
    if (event.submitter?.name) data.set(event.submitter.name, event.submitter.value);
    load(form.action, { method: "POST", body: data });
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("#labelling .steps a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    load(link.href);
  });
  window.addEventListener("popstate", () => location.reload());
  // n begins a note; Escape leaves it (reading.js).
  document.addEventListener("keydown", (event) => {
    if (event.key !== "n" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.matches("input, textarea, select")) return;
    const note = document.querySelector("[data-focus=n]");
    if (!note) return;
    event.preventDefault();
    note.focus();
  });
})();
