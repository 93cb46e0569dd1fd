// What stands in the place of the board until it is there. A board that could not be read is read again by itself.

import { Failure, Loading } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

export function BoardState({ error }) {
  if (!error) return html`<${Loading} />`;
  return html`<div class="stack"><${Failure} error=${error} /><p class="soft small">${word("readAgainByItself")}</p></div>`;
}
