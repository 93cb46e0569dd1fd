// Tells screen readers what has changed, once for each change. What ticks is shown elsewhere and not announced.

import { html, useEffect, useState } from "../vendor/preact/preact.js";

export function Announcer({ text }) {
  const [said, setSaid] = useState("");
  // Screen readers tell of changes in a region, not of what it had when it came.
  useEffect(() => setSaid(text), [text]);
  return html`<p class="unseen" role="status" aria-live="polite">${said}</p>`;
}
