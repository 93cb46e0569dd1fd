// Shows a view of the table once its module is there.

import { Failure, Loading } from "../shared/ui.js";
import { html, useEffect, useState } from "../vendor/preact/preact.js";

export function OpenView({ view, place }) {
  const [state, setState] = useState({ view: null, component: null, error: null });
  const load = async () => {
    setState({ view, component: null, error: null });
    try {
      const { default: component } = await view.load();
      setState((now) => (now.view === view ? { view, component, error: null } : now));
    } catch (error) {
      setState((now) => (now.view === view ? { view, component: null, error } : now));
    }
  };
  useEffect(() => {
    load();
  }, [view]);
  if (state.view !== view) return html`<${Loading} />`;
  // A file that cannot be loaded is a lost connection, or a version that the server has replaced.
  if (state.error) return html`<${Failure} error=${{ name: "Unreachable" }} retry=${() => location.reload()} />`;
  return state.component ? html`<${state.component} place=${place} />` : html`<${Loading} />`;
}
