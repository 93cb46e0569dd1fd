// A part of the console that is loaded when it is shown for the first time, so that what is shown first need not wait
// for it.

import { Failure, Loading } from "../shared/ui.js";
import { html, useEffect, useState } from "../vendor/preact/preact.js";

const loaded = new Map(); // By the function that loads it.

// `load` imports a module whose default export is the component. All else is given to the component.
export function Later({ load, ...given }) {
  const [, setLoads] = useState(0);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    if (loaded.has(load)) return;
    load().then(
      ({ default: component }) => {
        loaded.set(load, component);
        setLoads((loads) => loads + 1);
      },
      () => setFailed(() => load),
    );
  }, [load]);
  const Component = loaded.get(load);
  if (Component) return html`<${Component} ...${given} />`;
  // A file that cannot be loaded is a lost connection, or a version that the server has replaced.
  if (failed === load) return html`<${Failure} error=${{ name: "Unreachable" }} retry=${() => location.reload()} />`;
  return html`<${Loading} />`;
}
