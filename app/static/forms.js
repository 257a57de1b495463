/* Forms: what is typed is not lost, what is sent twice was meant once, filters act when they are chosen. */
(() => {
  "use strict";

  // --- a new job's fields come again after a choice: what is typed while they are on their way is not lost

  const filled = (form) => new URLSearchParams(new FormData(form)).toString();
  let sent = "";
  let opened = [];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target.id === "fields") sent = filled(event.detail.elt.form);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig } = event.detail;
    if (target.id !== "fields") return;
    opened = [...target.querySelectorAll("details[open]")].map(({ id }) => id);
    if (filled(requestConfig.elt.form) === sent) return;
    event.detail.shouldSwap = false;
    htmx.trigger(requestConfig.elt, "change");
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of opened) {
      const apart = document.getElementById(id);
      if (apart) apart.open = true;
    }
    opened = [];
  });

  // --- and it is there again after "back", "reload" and signing in again: browsers fill in fields by their places, which
  //     have changed. A form that came back with faults is as it was sent.

  const KEPT = "typed";

  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, target } = event.detail;
    if (target.id === "preview") history.replaceState({ typed: filled(elt) }, "");
  });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    if (xhr.status === 401 && elt.matches("form")) sessionStorage.setItem(KEPT, filled(elt));
  });
  document.addEventListener("submit", ({ target }) => {
    if (target.querySelector("#fields")) sessionStorage.setItem(KEPT, filled(target));
  });
  if (location.pathname !== "/sign-in") {
    const typed = sessionStorage.getItem(KEPT) ?? history.state?.typed;
    sessionStorage.removeItem(KEPT);
    if (typed && document.getElementById("fields") && !document.getElementById("errors")) {
      const values = {};
      for (const [name, value] of new URLSearchParams(typed)) (values[name] ??= []).push(value);
      htmx.ajax("POST", "/jobs/new/fields", { target: "#fields", swap: "outerHTML", values });
    }
  }

  // --- what is sent twice in a row was meant once

  const sentAt = new Map();

  document.addEventListener("submit", (event) => {
    const form = event.target, by = event.submitter;
    const action = (by?.getAttribute("formaction") ?? form.action) + (by?.value ?? "");
    const method = by?.getAttribute("formmethod") ?? form.method;
    const question = by?.dataset.confirm ?? form.dataset.confirm;
    const now = performance.now();
    if (method === "post" && now - (sentAt.get(action) ?? -Infinity) < 10000) event.preventDefault();
    else if (question && !confirm(question)) event.preventDefault();
    else sentAt.set(action, now);
  });
  addEventListener("pageshow", () => sentAt.clear());

  // --- a box that ticks all boxes of a name

  document.addEventListener("change", ({ target }) => {
    if (target.dataset?.ticks)
      for (const box of document.getElementsByName(target.dataset.ticks)) box.checked = target.checked;
  });

  // --- Enter in a field presses the button that belongs to it, where a form has several

  document.addEventListener("keydown", (event) => {
    const button = event.key === "Enter" && document.getElementById(event.target.dataset?.enter);
    if (!button) return;
    event.preventDefault();
    button.click();
  });

  // --- a file is read into the field that it fills, where it can be looked at before it is sent

  document.addEventListener("change", async ({ target }) => {
    if (target.dataset?.fills && target.files.length)
      document.getElementById(target.dataset.fills).value = await target.files[0].text();
  });

  // --- filters: what is empty restricts nothing, and stays out of the address

  document.addEventListener("formdata", ({ target, formData }) => {
    if (!("submitOnChange" in target.dataset)) return;
    for (const name of new Set(formData.keys())) {
      const kept = formData.getAll(name).filter((value) => value !== "");
      formData.delete(name);
      for (const value of kept) formData.append(name, value);
    }
  });

  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form && "submitOnChange" in form.dataset) form.requestSubmit();
  });
})();
