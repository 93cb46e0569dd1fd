// For admins: what is done with all open dead letters that the filters show. The service takes a few hundred at a time.

import { Button, Confirm, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";

const DEEDS = {
  redrive: { call: (api, body) => api.redriveDeadLetters(body), done: (answer) => answer.redriven },
  discard: { call: (api, body) => api.discardDeadLetters(body), done: (answer) => answer.discarded },
};

export function BulkDeeds({ meant, again }) {
  const { api } = useConsole();
  const [asked, setAsked] = useState(null);
  const run = async () => {
    const { call, done } = DEEDS[asked];
    const filters = Object.fromEntries(Object.entries(meant).filter(([, value]) => value));
    const body = Object.keys(filters).length ? filters : { all: true };
    let count = 0;
    let answer;
    do {
      answer = await call(api, body);
      count += done(answer);
    } while (answer.remaining && done(answer));
    tell(word(`done_all_${asked}`, { count }));
    await again();
  };
  return html`<div class="row">
    ${Object.keys(DEEDS).map((deed) => html`<${Button} key=${deed} kind=${deed === "discard" ? "bad" : ""} onClick=${() => setAsked(deed)}>${word(`all_${deed}`)}<//>`)}
    ${asked && html`<${Confirm} title=${word(`all_${asked}`)} question=${word(`ask_all_${asked}`)} label=${word(`letter_${asked}`)} kind=${asked === "discard" ? "bad" : "main"} onConfirm=${run} onClose=${() => setAsked(null)} />`}
  </div>`;
}
