// Where nobody came: cells of the map with how often. The API gives the middle of a cell, never a place of an elder.

import { Failure, Loading } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useEffect, useRef, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";

export function UnmetMap({ cells }) {
  const { settings } = useConsole();
  const element = useRef(null);
  const [state, setState] = useState("loading");
  useEffect(() => {
    let close = null;
    let ended = false;
    import("./cell_map.js").then(
      ({ openCellMap }) => {
        if (ended) return;
        close = openCellMap(element.current, cells, settings.tileAddress);
        setState("open");
      },
      () => setState("failed"),
    );
    return () => {
      ended = true;
      close?.();
    };
  }, []);
  return html`<div class="stack">
    ${state === "failed" && html`<${Failure} error=${{ name: "Unreachable" }} />`}
    ${state === "loading" && html`<${Loading} />`}
    <div class="cell-map" ref=${element} role="img" aria-label=${word("plotLabel", { name: word("figure_unmet") })}></div>
    ${settings.tileAddress && settings.tileAttribution && html`<p class="soft small">${settings.tileAttribution}</p>`}
  </div>`;
}
