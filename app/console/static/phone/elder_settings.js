// The elder's few choices: how the button is pressed, and signing out.

import { Dialog } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";
import { SignOut } from "./phone_app.js";

const KEY = "yaninda.press_way";
const WAYS = ["hold", "tap"];

export function readWay(storage = globalThis.localStorage) {
  try {
    return storage.getItem(KEY) === "tap" ? "tap" : "hold";
  } catch {
    return "hold";
  }
}

function keepWay(way) {
  try {
    localStorage.setItem(KEY, way);
  } catch {
    // Then the choice holds until the page is closed.
  }
}

export function ElderSettings({ phone, way, onWay, onClose }) {
  const choose = (chosen) => {
    keepWay(chosen);
    onWay(chosen);
  };
  return html`<${Dialog} title=${word("settings")} onClose=${onClose}>
    <fieldset class="choices">
      <legend>${word("pressWay")}</legend>
      ${WAYS.map(
        (one) => html`<label key=${one} class="choice">
          <input type="radio" name="way" value=${one} checked=${way === one} onChange=${() => choose(one)} />
          <span>${word(`way_${one}`)}</span>
        </label>`,
      )}
    </fieldset>
    <div class="row"><${SignOut} phone=${phone} /></div>
  <//>`;
}
