/* Draws the charts of a page with Vega-Embed, which is loaded when there is a chart to draw.
   `ast: true`: expressions are interpreted, never compiled, because the page's policy forbids eval. */
(() => {
  "use strict";
  const source = document.currentScript.dataset.vega;
  let loading = null;

  function vegaEmbed() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = source;
      script.onload = () => resolve(window.vegaEmbed);
      script.onerror = () => {
        loading = null; // the next chart tries again
        reject(new Error("the charts' script could not be loaded"));
      };
      document.head.append(script);
    });
    return loading;
  }

  /* Vega-Lite's configuration in the page's own colours, the legend in as many columns as there is room for. */
  function config(spec, width) {
    const longest = Math.max(...namesIn(spec).map((name) => name.length));
    const columns = Math.max(1, Math.floor(width / (6.5 * longest + 30)));
    const style = getComputedStyle(document.documentElement);
    const probe = document.createElement("i");
    document.body.append(probe);
    const colour = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const [ink, quiet, line] = ["ink", "quiet", "line"].map(colour);
    const range = style.getPropertyValue("--series").split(" ").filter(Boolean).map((name) => colour(name.slice(2)));
    probe.remove();
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      view: { stroke: null },
      axis: { domainColor: quiet, gridColor: line, labelColor: quiet, tickColor: quiet, titleColor: ink, titleFontWeight: "normal", labelFontSize: 11 },
      axisBand: { labelOverlap: true },
      legend: { labelColor: ink, titleColor: ink, labelFontSize: 11, labelLimit: width - 40, orient: "bottom", columns },
      text: { color: quiet },
      rule: { color: quiet },
      range: { category: range },
    };
  }

  /* The series: what colours stand for. */
  function namesIn(spec) {
    const domains = spec.layer.map((layer) => layer.encoding.color?.scale?.domain ?? layer.encoding.color?.sort ?? []);
    return ["", ...domains.flat()];
  }

  /* As wide as there is room, so that what is written in it is as large on a phone as anywhere. */
  async function draw(element) {
    const spec = { ...JSON.parse(element.dataset.chart), width: "container", autosize: { type: "fit-x", contains: "padding" } };
    delete spec.config;
    try {
      const embed = await vegaEmbed();
      await embed(element, spec, {
        ast: true,
        actions: false,
        defaultStyle: false,
        renderer: "svg",
        config: config(spec, element.clientWidth),
        tooltip: { disableDefaultStyle: true },
      });
      element.dataset.drawn = "";
    } catch (error) {
      element.textContent = "The chart could not be drawn; its numbers are below.";
      console.error(error);
    }
  }

  const drawAll = (fresh) => {
    for (const one of document.querySelectorAll("[data-chart]")) if (!fresh || !("drawn" in one.dataset)) draw(one);
  };

  document.addEventListener("htmx:afterSettle", () => drawAll(true));
  document.addEventListener("warpfold:theme", () => drawAll(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(false));
  drawAll(true);
})();
