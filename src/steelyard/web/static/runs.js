"use strict";
// The list of runs: it follows those at work, and filters while one types. Without script, forms and links do the same.
(() => {
  const list = () => document.getElementById("list");

  // --- the list as the server has it now, put in place of the old one ---
  let latest = 0;
  const refresh = async (address = location.href) => {
    const mine = ++latest;
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok || mine !== latest) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("list");
    // Somebody is about to answer a question; the list can wait.
    if (!fresh || mine !== latest || document.querySelector(":popover-open")) return;
    list().replaceWith(document.adoptNode(fresh));
    listen();
  };

  // --- events: only while there is something to follow and somebody looks; browsers allow few connections ---
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  const show = (row, snapshot) => {
    const bar = row.querySelector("progress");
    if (!bar) return false;
    const passed = snapshot.done + snapshot.skipped + snapshot.bad_rows;
    if (snapshot.total) {
      bar.max = snapshot.total;
      bar.value = passed;
    }
    const parts = [passed.toLocaleString("en") + (snapshot.total ? ` / ${snapshot.total.toLocaleString("en")}` : "")];
    if (snapshot.rate) parts.push(`${snapshot.rate.toFixed(1)}/s`);
    if (snapshot.eta_seconds !== null) parts.push(clock(snapshot.eta_seconds));
    if (snapshot.cost !== null) parts.push(`$${snapshot.cost.toFixed(4)}`);
    row.querySelector("[data-figures]").textContent = parts.join(" · ");
    return true;
  };
  const onProgress = (event) => {
    const progress = JSON.parse(event.data);
    const row = [...document.querySelectorAll("tr[data-run]")].find((one) => one.dataset.run === progress.id);
    const shown = row ? show(row, progress) : false;
    // Begun or ended elsewhere, told to stop, or its turn has come: the row has other words and buttons now.
    const stopping = row?.querySelector(".acts button")?.disabled ?? false;
    const waiting = row?.querySelector("[data-waiting]") != null;
    const other = progress.stopping !== stopping || progress.waiting !== waiting;
    if (progress.state !== "running" ? shown : !shown || other) refresh();
  };
  const listen = () => {
    const live = "live" in list().dataset;
    if (!live || document.hidden) {
      close();
      return;
    }
    if (!source) {
      source = new EventSource("/events");
      source.addEventListener("progress", onProgress);
      // What ended between this page and the first event is told by nobody else.
      source.addEventListener("open", () => refresh());
    }
    // Scores that are still being counted.
    if ([...list().querySelectorAll("td > .quiet")].some((one) => one.textContent === "…")) setTimeout(refresh, 2000);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && "live" in list().dataset) refresh();
    listen();
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", listen);

  // --- filtering while typing; the address follows, so that it can be passed on ---
  const filter = document.querySelector("form.filter");
  if (filter) {
    filter.querySelector("[data-plain]").hidden = true;
    let waiting = 0;
    const apply = () => {
      const given = [...new FormData(filter)].filter(([, value]) => value);
      const query = new URLSearchParams(given).toString();
      history.replaceState(null, "", query ? `/runs?${query}` : "/runs");
      refresh();
    };
    filter.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(apply, 200);
    });
    filter.addEventListener("submit", (event) => {
      event.preventDefault();
      apply();
    });
  }

  // --- a run is started once, however often the button is pressed ---
  const start = document.querySelector("form.panel");
  start?.addEventListener("submit", () => {
    start.querySelector("button").disabled = true;
  });
  window.addEventListener("pageshow", () => {
    const button = start?.querySelector("button");
    if (button) button.disabled = false;
  });
})();
