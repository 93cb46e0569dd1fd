// Whether what is shown is of this moment.

import { useStore } from "../shared/store.js";
import { Button, useOnline } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html, useEffect } from "../vendor/preact/preact.js";
import { useConsole } from "./context.js";

export function Connection() {
  const { live } = useConsole();
  const { connection } = useStore(live.store);
  const online = useOnline();
  useEffect(() => {
    if (online) live.retryNow();
  }, [online]);
  const state = online ? connection : "offline";
  return html`<p class=${`connection ${state}`} role="status">
    <span>${word(`connection_${state}`)}</span>
    ${state === "waiting" && html`<${Button} kind="bare" onClick=${() => live.retryNow()}>${word("tryAgain")}<//>`}
  </p>`;
}
