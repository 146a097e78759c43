"use strict";
// What reading pages do beyond plain HTML: numbers that follow a run, parts loaded when opened, copying, keys.
(() => {
  const fetched = async (address) => {
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(answer.statusText);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  // --- a page that follows its run: the new part takes the old one's place, what was unfolded stays so ---
  const opened = (root) => [...root.querySelectorAll("details")].map((one) => one.open);
  const refresh = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.status >= 400 && answer.status < 500) {
      // It will not get better by asking again: show what the server says.
      location.reload();
      return false;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const old = document.getElementById("live");
    const fresh = page.getElementById("live");
    if (!fresh) return false;
    // What stands beside it and was not ready: unless somebody is at work in it.
    for (const part of document.querySelectorAll("[data-part]")) {
      const other = page.getElementById(part.id);
      if (other && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(other));
    }
    if (fresh.innerHTML !== old.innerHTML) {
      const open = opened(old);
      fresh.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
    }
    const more = "live" in fresh.dataset;
    if (!more || fresh.innerHTML !== old.innerHTML) old.replaceWith(document.adoptNode(fresh));
    return more;
  };
  let source = null;
  let due = null;
  let moment = 0;
  const soon = (milliseconds) => {
    const wanted = Date.now() + milliseconds;
    if (due && moment <= wanted) return;
    clearTimeout(due);
    moment = wanted;
    due = setTimeout(follow, milliseconds);
  };
  const follow = async () => {
    due = null;
    let more = true;
    try {
      more = document.hidden || (await refresh());
    } catch { /* the viewer may be restarting; try again */ }
    const run = document.getElementById("live").dataset.run;
    if (run && !source) {
      source = new EventSource("/events");
      source.addEventListener("progress", (event) => {
        if (JSON.parse(event.data).id === run) soon(1000);
      });
    } else if (!run) {
      source?.close();
      source = null;
    }
    // A run tells when it moves; what is being counted does not.
    if (more) soon(run ? 10000 : 2000);
  };
  if (document.querySelector("#live[data-live]")) soon(1000);

  // --- parts that are loaded when they are opened ---
  for (const part of document.querySelectorAll("details[data-load]")) {
    part.addEventListener("toggle", async () => {
      if (!part.open || part.dataset.done) return;
      part.dataset.done = "1";
      try {
        const found = (await fetched(part.dataset.load)).getElementById("part");
        part.querySelector(".loaded").replaceChildren(document.adoptNode(found));
      } catch {
        delete part.dataset.done;
      }
    });
  }

  // --- a filter that is chosen is applied ---
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  });

  // --- a check of a judge takes a while: say so, and show what came of it in place ---
  for (const form of document.querySelectorAll("form[data-check]")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      const words = button.textContent;
      button.disabled = true;
      button.textContent = button.dataset.busy;
      try {
        const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
        const found = new DOMParser().parseFromString(await answer.text(), "text/html");
        const told = found.getElementById("part") ?? found.querySelector("main > *");
        document.getElementById("part").replaceChildren(...document.adoptNode(told).childNodes);
        document.getElementById("part").scrollIntoView({ block: "nearest" });
      } finally {
        button.disabled = false;
        button.textContent = words;
      }
    });
  }

  // --- copying ---
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const answer = await fetch(button.dataset.copy, { credentials: "same-origin" });
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }

  // --- keys: what has data-key is pressed by that key; rows are walked with j and k ---
  const rows = () => [...document.querySelectorAll("[data-rows] tbody tr")];
  const walk = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("here"));
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))] ?? all[0];
    all[at]?.classList.remove("here");
    next.classList.add("here");
    next.querySelector("a")?.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const help = document.getElementById("keys");
  const typing = (target) => target instanceof Element && target.matches("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "?" && help) {
      if (help.open) help.close(); else help.showModal();
      event.preventDefault();
      return;
    }
    if (help?.open) return;
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (rows().length && ["j", "ArrowDown", "k", "ArrowUp"].includes(name)) {
      walk(name === "j" || name === "ArrowDown" ? 1 : -1);
      event.preventDefault();
      return;
    }
    const search = document.querySelector("input[type=search]");
    if (name === "/" && search) {
      search.focus();
      search.select();
      event.preventDefault();
      return;
    }
    const target = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key.split(" ").includes(name));
    if (target) {
      event.preventDefault();
      target.click();
    }
  });
  for (const button of document.querySelectorAll("[data-help]")) {
    button.hidden = false;
    button.addEventListener("click", () => help.showModal());
  }
})();
