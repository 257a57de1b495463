/* What the dashboard does in the browser: theme, times, polls, patience with a server that is away, copying. */
(() => {
  "use strict";
  const root = document.documentElement;

  // --- theme: a cookie, so that the server draws the next page in it from the start

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  function setTheme(theme) {
    root.dataset.theme = theme;
    document.querySelector("meta[name=color-scheme]").content = theme;
    document.cookie = `warpfold_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
    document.dispatchEvent(new CustomEvent("warpfold:theme"));
  }

  // --- times: absolute in the page, so that it stays the same; relative to now in the browser

  function spoken(seconds) {
    if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} min`;
    return `${Math.floor(seconds / 86400)} d`;
  }

  /* A moment that has passed is never "in 2 s", even where the clock of this machine is behind that of the service. */
  function worded(kind, seconds) {
    if ("since" in kind) return spoken(seconds);
    if ("ahead" in kind && seconds < 0) return `in ${spoken(-seconds)}`;
    return seconds < 5 ? "just now" : `${spoken(seconds)} ago`;
  }

  function tick() {
    for (const time of document.querySelectorAll("time[data-ago], time[data-since], time[data-ahead]")) {
      const then = new Date(time.dateTime);
      const text = worded(time.dataset, (Date.now() - then) / 1000);
      if (time.textContent !== text) time.textContent = text;
      if (!time.title) time.title = then.toLocaleString();
    }
  }

  // --- polling: say what is shown; leave alone a page that nobody sees, and what somebody is about to use

  const polls = (element) => (element.getAttribute("hx-trigger") || "").startsWith("every");
  const SELECTED_MS = 30000; // a selection that was forgotten must not stop the page for good
  let selectedAt = -Infinity;
  let scrolled = [];

  /* A click on what is replaced between press and release is lost, and so is a selection. The next poll comes soon. */
  const inUse = (element) =>
    element.matches(":active") ||
    (performance.now() - selectedAt < SELECTED_MS &&
      getSelection().type === "Range" &&
      getSelection().containsNode(element, true));

  document.addEventListener("selectionchange", () => (selectedAt = performance.now()));
  document.addEventListener("htmx:configRequest", (event) => {
    const etag = event.detail.elt.dataset.etag;
    if (etag) event.detail.headers["If-None-Match"] = etag;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (polls(event.detail.elt) && document.hidden) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target } = event.detail;
    if (polls(target) && inUse(target)) event.detail.shouldSwap = false;
    scrolled = [...target.querySelectorAll(".scroll[id]")].map(({ id, scrollLeft }) => [id, scrollLeft]);
  });
  document.addEventListener("htmx:afterSettle", () => {
    for (const [id, left] of scrolled) document.getElementById(id)?.scrollTo({ left });
    tick();
  });
  document.addEventListener("visibilitychange", tick);

  // --- a server that is away: say so, and ask again for what came once and did not come

  const banner = () => document.getElementById("connection");
  let away = false;

  function setAway(now) {
    if (away === now) return;
    away = now;
    banner().hidden = !now;
    banner().textContent = now ? "Reconnecting…" : "";
  }

  function isAway({ detail: { elt } }) {
    setAway(true);
    if (!polls(elt)) setTimeout(() => elt.isConnected && htmx.trigger(elt, "again"), 2000);
  }

  document.addEventListener("htmx:sendError", isAway);
  document.addEventListener("htmx:timeout", isAway);
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr } = event.detail;
    if (xhr.status > 500 || (xhr.status === 500 && polls(elt))) isAway(event);
    else if (xhr.status > 0) setAway(false);
  });

  // --- small things

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("themeToggle" in button.dataset) setTheme(isDark() ? "light" : "dark");
    if (button.dataset.copy) {
      const label = button.querySelector("span");
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText);
        label.textContent = "Copied";
      } catch {
        label.textContent = "Select and copy";
      }
      setTimeout(() => (label.textContent = "Copy"), 2000);
    }
  });

  tick();
  setInterval(tick, 1000);
})();
