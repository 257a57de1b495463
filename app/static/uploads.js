/* Files of the visitor's: each goes to the service as it is dropped or chosen, with its progress; then it fills the form around
   it, or its page is opened. */
(() => {
  "use strict";

  const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`);

  function send(zone, file) {
    const bar = zone.querySelector("progress");
    const status = zone.querySelector("[role=status]");
    const say = (text, style) => ((status.textContent = text), (status.className = style));
    if (zone.sending) return say(`${zone.sending} is still on its way.`, "error");
    zone.sending = file.name;
    const request = new XMLHttpRequest();
    request.open("POST", `${zone.dataset.upload}?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("HX-Request", "true"); // an error comes as a sentence, not as a page
    request.setRequestHeader("HX-Current-URL", location.href);
    bar.hidden = false;
    bar.value = 0;
    say(`${file.name}, ${size(file.size)}`, "quiet");
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      bar.value = total ? (100 * loaded) / total : 0;
      say(loaded < total ? `${file.name}: ${size(loaded)} of ${size(total)}` : `${file.name}: the service checks it`, "quiet");
    });
    request.addEventListener("loadend", () => {
      zone.sending = null;
      bar.hidden = true;
      const elsewhere = request.getResponseHeader("HX-Redirect");
      if (elsewhere) location.assign(elsewhere);
      else if (request.status === 200 || request.status === 201) kept(zone, request, say);
      else if (request.status) say(new DOMParser().parseFromString(request.responseText, "text/html").body.innerText.trim(), "error");
      else say(`${file.name} did not arrive: the connection broke off. Send it again.`, "error");
    });
    request.send(file);
  }

  function kept(zone, request, say) {
    const dataset = JSON.parse(request.responseText);
    const source = zone.dataset.fillsSource;
    if (!source) return location.assign(request.getResponseHeader("Location"));
    say(`${dataset.name} is uploaded.`, "quiet");
    const ofAnother = (name) => name === "by" || [source, "aggregations"].includes(name.split(".")[0]); // its columns are others
    const values = {};
    for (const [name, value] of new FormData(zone.closest("form"))) if (!ofAnother(name)) (values[name] ??= []).push(value);
    values[`${source}.type`] = ["dataset"];
    values[`${source}.id`] = [dataset.id];
    values[`${source}.name`] = [dataset.name];
    htmx.ajax("POST", `/jobs/new/fields?look=${source}`, { target: "#fields", swap: "outerHTML", values });
  }

  document.addEventListener("change", ({ target }) => {
    if (!("uploads" in (target.dataset ?? {})) || !target.files.length) return;
    send(target.closest("[data-upload]"), target.files[0]);
    target.value = "";
  });

  const zoneAt = (event) => event.target.closest?.("[data-upload]");

  document.addEventListener("dragover", (event) => {
    const zone = zoneAt(event);
    if (!zone) return;
    event.preventDefault();
    zone.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => zoneAt(event)?.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    const zone = zoneAt(event);
    if (!zone) return;
    event.preventDefault();
    zone.classList.remove("over");
    const [file, ...more] = event.dataTransfer.files;
    const status = zone.querySelector("[role=status]");
    if (file && !more.length) send(zone, file);
    else [status.textContent, status.className] = ["Drop one file at a time; a folder goes into a zip archive first.", "error"];
  });
})();
