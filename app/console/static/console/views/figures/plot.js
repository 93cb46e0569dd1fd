// A drawing by uPlot, as wide as there is room, in the colours of the page. Series differ by their pattern or dashes
// as well as by colour. What stands under the pointer is written below it.

import { number } from "../../../shared/format.js";
import { word } from "../../../shared/words.js";
import { html, useEffect, useRef, useState } from "../../../vendor/preact/preact.js";
import { onSchemeChange } from "../../map/map_colours.js";
import { plotOptions, readPlotColours, stacked } from "./plot_options.js";

const HEIGHT = 240;

export function Plot({ kind, labels, values, series, name }) {
  const element = useRef(null);
  const [index, setIndex] = useState(null);
  useEffect(() => {
    let opened = null;
    let ended = false;
    const draw = async () => {
      const { default: UPlot } = await import("../../../vendor/uplot/uplot.js");
      if (ended) return;
      opened?.destroy();
      const options = plotOptions(UPlot, { kind, labels, series, colours: readPlotColours(element.current), onIndex: setIndex });
      const size = { width: element.current.clientWidth, height: HEIGHT };
      opened = new UPlot({ ...options, ...size }, [labels.map((_, at) => at), ...(kind === "stack" ? stacked(values) : values)], element.current);
    };
    draw();
    const endScheme = onSchemeChange(draw);
    const resized = new ResizeObserver(() => opened?.setSize({ width: element.current.clientWidth, height: HEIGHT }));
    resized.observe(element.current);
    return () => {
      ended = true;
      endScheme();
      resized.disconnect();
      opened?.destroy();
    };
  }, [kind, JSON.stringify(values)]);
  return html`<div class="stack plot">
    ${series.length > 0 && html`<ul class="plain row small">${series.map(({ key, look }) => html`<li key=${key} class=${`series ${look}`}>${word(`column_${key}`)}</li>`)}</ul>`}
    <div class="plot-area" ref=${element} role="img" aria-label=${word("plotLabel", { name: word(`figure_${name}`) })}></div>
    <p class="small soft numbers plot-point" aria-hidden="true">${index === null ? word("plotPoint") : readout({ name, labels, values, series, index })}</p>
  </div>`;
}

function readout({ name, labels, values, series, index }) {
  const parts = values.map((one, at) => `${series.length ? `${word(`column_${series[at].key}`)} ` : ""}${one[index] === null ? "–" : number(Math.round(one[index] * 10) / 10)}`);
  return word(`figure_${name}_point`, { at: labels[index], values: parts.join(" · ") });
}
