// The people whom a search has found.

import { Empty } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

export function FoundPeople({ items, row, kind = "candidates", empty = word("nobodyMatches") }) {
  if (!items.length) return html`<${Empty}>${empty}<//>`;
  return html`<ul class=${`plain ${kind}`}>${items.map(row)}</ul>`;
}
