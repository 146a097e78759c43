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
  let ended = false;
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
    // While a run tells that it moves, its report is looked for again when it does.
    if (more && (!panel || ended)) soon(2000);
  };

  // --- a run at work: every event is the whole picture; the report below follows at its own pace ---
  const panel = document.getElementById("progress");
  const clock = (seconds) => {
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    const rest = String(seconds % 60).padStart(2, "0");
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  };
  const whole = (value) => (value === null ? "–" : value.toLocaleString("en"));
  const onScale = {
    ratio: (value) => `${(100 * value).toFixed(1)}%`,
    points: (value) => value.toFixed(1),
  };
  const figures = (snapshot) => {
    const passed = snapshot.done + snapshot.skipped + snapshot.bad_rows;
    const tokens = snapshot.prompt_tokens === null ? null : snapshot.prompt_tokens + snapshot.completion_tokens;
    return {
      passed: whole(passed) + (snapshot.total ? ` / ${whole(snapshot.total)}` : ""),
      rate: snapshot.rate === null ? "–" : snapshot.rate.toFixed(1),
      eta: snapshot.eta_seconds === null ? "–" : clock(snapshot.eta_seconds),
      spent: snapshot.cost === null ? "–" : snapshot.cost.toFixed(4),
      tokens: whole(tokens),
      calls: whole(snapshot.calls),
      in_flight: whole(snapshot.in_flight),
      failed: whole(snapshot.partial + snapshot.failed),
    };
  };
  const showWorkers = (workers) => {
    const area = panel.querySelector("[data-workers]");
    const body = area.querySelector("tbody");
    area.hidden = !workers.length;
    body.replaceChildren(...workers.map((one) => {
      const line = document.createElement("tr");
      const name = Object.assign(document.createElement("th"), { scope: "row", textContent: one.worker });
      const cell = (text, kind = "") => Object.assign(document.createElement("td"), { textContent: text, className: kind });
      const counts = [whole(one.judged), one.per_second.toFixed(1), whole(one.in_flight), whole(one.calls)];
      const state = one.state === "gone" ? body.dataset.gone : body.dataset.atWork;
      line.append(name, cell(state), ...counts.map((text) => cell(text, "number")), cell(one.holds));
      return line;
    }));
  };
  const show = (snapshot) => {
    showWorkers(snapshot.workers);
    const bar = panel.querySelector("progress");
    if (snapshot.total) {
      bar.max = snapshot.total;
      bar.value = snapshot.done + snapshot.skipped + snapshot.bad_rows;
    }
    for (const [name, text] of Object.entries(figures(snapshot))) {
      panel.querySelector(`[data-figure=${name}]`).textContent = text;
    }
    for (const cell of panel.querySelectorAll("[data-score]")) {
      const value = snapshot.scores[cell.dataset.score];
      const shape = onScale[cell.dataset.scale] ?? ((given) => given.toPrecision(4));
      if (value !== undefined) cell.textContent = shape(value).replace("-", "\u2212");
    }
    const state = panel.querySelector("[data-state]");
    state.textContent = snapshot.stopping ? state.dataset.stopping : snapshot.waiting ? state.dataset.waiting : state.dataset.running;
    if (snapshot.stopping) {
      const button = panel.querySelector("button");
      if (button) button.disabled = true;
    }
  };
  if (panel) {
    let done = -1;
    const source = new EventSource(panel.dataset.events);
    source.addEventListener("progress", (event) => {
      const snapshot = JSON.parse(event.data);
      show(snapshot);
      if (snapshot.done !== done) soon(done < 0 ? 500 : 4000);
      done = snapshot.done;
    });
    source.addEventListener("end", async (event) => {
      show(JSON.parse(event.data));
      source.close();
      panel.remove();
      ended = true;
      clearTimeout(due);
      due = null;
      soon(0);
    });
    window.addEventListener("pagehide", () => source.close());
  } else if (document.querySelector("#live[data-live]")) {
    soon(1000);
  }

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
        const part = found.getElementById("part") ?? found.querySelector("main > *");
        document.getElementById("part").replaceChildren(...document.adoptNode(part).childNodes);
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

  // --- a link to pass on: this page without what is the reader's own (language) ---
  for (const button of document.querySelectorAll("[data-share]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const address = new URL(location.href);
      address.searchParams.delete("lang");
      await navigator.clipboard.writeText(address.href);
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }

  // --- filters that are saved: in this browser, for the tables of all runs ---
  const saving = document.getElementById("saving");
  if (saving) {
    const KEY = "steelyard-filters";
    const read = () => {
      try {
        const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
        return kept.filter((one) => typeof one.name === "string" && typeof one.query === "string");
      } catch {
        return [];
      }
    };
    const query = new URLSearchParams(location.search);
    for (const name of ["lang", "page"]) query.delete(name);
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    if (!query.has("low") && !query.has("high")) query.delete("score");
    if (query.get("sort") === "worst") query.delete("sort");
    const here = query.toString();
    const list = saving.querySelector("ul");
    const button = saving.querySelector("[data-save]");
    const write = (kept) => {
      localStorage.setItem(KEY, JSON.stringify(kept));
      show();
    };
    const show = () => {
      const kept = read();
      list.replaceChildren(...kept.map((one) => {
        const link = Object.assign(document.createElement("a"), { textContent: one.name });
        link.href = `${saving.dataset.saving}?${new URLSearchParams(one.query)}`;
        if (one.query === here) link.setAttribute("aria-current", "true");
        const away = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
        away.setAttribute("aria-label", `${list.dataset.forget}: ${one.name}`);
        away.addEventListener("click", () => write(read().filter((other) => other.name !== one.name)));
        const item = document.createElement("li");
        item.className = "chip plain";
        item.append(link, away);
        return item;
      }));
      saving.querySelector("span").hidden = list.hidden = !kept.length;
      button.hidden = !here || kept.some((one) => one.query === here);
      saving.hidden = !kept.length && button.hidden;
    };
    const ask = saving.querySelector("dialog");
    const name = ask.querySelector("input");
    button.addEventListener("click", () => {
      ask.showModal();
      name.select();
    });
    ask.addEventListener("close", () => {
      const called = name.value.trim();
      if (ask.returnValue === "save" && called) {
        write([...read().filter((one) => one.name !== called), { name: called, query: here }]);
      }
      ask.returnValue = "";
    });
    show();
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
