// A drawing by uPlot, as wide as there is room, in the colours of the page. Series differ by their pattern or dashes
// as well as by colour. What stands under the pointer is written below it.

import { number } from "../../../shared/format.js";
import { word } from "../../../shared/words.js";
import { html, useEffect, useRef, useState } from "../../../vendor/preact/preact.js";
import { onSchemeChange } from "../../map/map_colours.js";
import { plotOptions, readPlotColours, stacked } from "./plot_options.js";

const HEIGHT = 240;

export function Plot({ kind, labels, values, series, name }) {
  const [index, setIndex] = useState(null);
  const element = useDrawing({ kind, labels, values, series, onIndex: setIndex });
  const legend = series.map(({ key, look }) => html`<li key=${key} class=${`series ${look}`}>${word(`column_${key}`)}</li>`);
  const point = index === null ? word("plotPoint") : readout({ name, labels, values, series, index });
  const label = word("plotLabel", { name: word(`figure_${name}`) });
  return html`<div class="stack plot">
    ${legend.length > 0 && html`<ul class="plain row small">${legend}</ul>`}
    <div class="plot-area" ref=${element} role="img" aria-label=${label}></div>
    <p class="small soft numbers plot-point" aria-hidden="true">${point}</p>
  </div>`;
}

function useDrawing({ kind, labels, values, series, onIndex }) {
  const element = useRef(null);
  useEffect(() => {
    let opened = null;
    let ended = false;
    const sizeNow = () => ({ width: element.current.clientWidth, height: HEIGHT });
    const columns = [labels.map((_, at) => at), ...(kind === "stack" ? stacked(values) : values)];
    const draw = async () => {
      const { default: UPlot } = await import("../../../vendor/uplot/uplot.js");
      if (ended) return;
      opened?.destroy();
      const colours = readPlotColours(element.current);
      const options = plotOptions(UPlot, { kind, labels, series, colours, onIndex });
      opened = new UPlot({ ...options, ...sizeNow() }, columns, element.current);
    };
    draw();
    const endScheme = onSchemeChange(draw);
    const resized = new ResizeObserver(() => opened?.setSize(sizeNow()));
    resized.observe(element.current);
    return () => {
      ended = true;
      endScheme();
      resized.disconnect();
      opened?.destroy();
    };
  }, [kind, JSON.stringify(values)]);
  return element;
}

function readout({ name, labels, values, series, index }) {
  const parts = values.map((one, at) => {
    const shown = one[index] === null ? "–" : number(Math.round(one[index] * 10) / 10);
    return series.length ? `${word(`column_${series[at].key}`)} ${shown}` : shown;
  });
  return word(`figure_${name}_point`, { at: labels[index], values: parts.join(" · ") });
}
