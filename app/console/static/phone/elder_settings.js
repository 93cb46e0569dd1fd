// The elder's few choices: how the button is pressed, and signing out.

import { Button, Confirm, Dialog } from "../shared/ui.js";
import { word } from "../shared/words.js";
import { html } from "../vendor/preact/preact.js";

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

export function ElderSettings({ way, onWay, onSignOut, onClose }) {
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
    <div class="row"><${Button} onClick=${onSignOut}>${word("signOut")}<//></div>
  <//>`;
}

// Somebody else may use this phone next, so a press that waits on it is deleted, and never without a word.
export function SignOutSheet({ session, onClose }) {
  return html`<${Confirm}
    title=${word("signOutTitle")}
    question=${word("signOutQuestion")}
    label=${word("signOutYes")}
    dismiss=${word("signOutNo")}
    kind="bad"
    onConfirm=${() => session.end()}
    onClose=${onClose}
  />`;
}
