/* What the dashboard does in the browser: polls with ETags, a word when the server is away, times, theme, copying. */
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

  function tick() {
    for (const time of document.querySelectorAll("time[data-ago], time[data-since]")) {
      const then = new Date(time.dateTime);
      const seconds = (Date.now() - then) / 1000;
      const text = "since" in time.dataset ? spoken(seconds) : seconds < 5 ? "just now" : `${spoken(seconds)} ago`;
      if (time.textContent !== text) time.textContent = text;
      if (!time.title) time.title = then.toLocaleString();
    }
  }

  // --- polling: say what is shown; leave an unseen page alone; say when the server is away

  const banner = () => document.getElementById("connection");
  let away = false;

  function setAway(now) {
    if (away === now) return;
    away = now;
    banner().hidden = !now;
    banner().textContent = now ? "Reconnecting…" : "";
  }

  const polls = (element) => (element.getAttribute("hx-trigger") || "").startsWith("every");

  document.addEventListener("htmx:configRequest", (event) => {
    const etag = event.detail.elt.dataset.etag;
    if (etag) event.detail.headers["If-None-Match"] = etag;
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (polls(event.detail.elt) && document.hidden) event.preventDefault();
  });
  document.addEventListener("htmx:sendError", () => setAway(true));
  document.addEventListener("htmx:timeout", () => setAway(true));
  document.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr.status;
    if (status >= 500) setAway(true);
    else if (status > 0) setAway(false);
  });
  document.addEventListener("htmx:afterSettle", tick);
  document.addEventListener("visibilitychange", tick);

  // --- a form whose fields come again after a choice: what is typed while they are on their way is not lost

  const filled = (form) => new URLSearchParams(new FormData(form)).toString();
  let sent = "";

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target.id === "fields") sent = filled(event.detail.elt.form);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig } = event.detail;
    if (target.id !== "fields" || filled(requestConfig.elt.form) === sent) return;
    event.detail.shouldSwap = false;
    htmx.trigger(requestConfig.elt, "change");
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
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form && "submitOnChange" in form.dataset) form.requestSubmit();
  });

  tick();
  setInterval(tick, 1000);
})();
