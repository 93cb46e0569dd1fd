// For admins: what is done with all open dead letters that the filters show. The service takes a few hundred at a time.

import { tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { AskFirst } from "../parts.js";

export function BulkDeeds({ meant, again }) {
  const { api } = useConsole();
  const run = async (deed, call, countOf) => {
    let count = 0;
    let answer;
    do {
      answer = await call(bodyOf(meant));
      count += countOf(answer);
    } while (answer.remaining && countOf(answer));
    tell(word(`done_all_${deed}`, { count }));
    await again();
  };
  const redrive = () => run("redrive", api.redriveDeadLetters, (answer) => answer.redriven);
  const discard = () => run("discard", api.discardDeadLetters, (answer) => answer.discarded);
  return html`<div class="row">
    <${AskFirst} label=${word("all_redrive")} question=${word("ask_all_redrive")} onConfirm=${redrive} />
    <${AskFirst} label=${word("all_discard")} question=${word("ask_all_discard")} kind="bad" onConfirm=${discard} />
  </div>`;
}

// The service wants to be told that all are meant.
function bodyOf(meant) {
  const filters = Object.fromEntries(Object.entries(meant).filter(([, value]) => value));
  return Object.keys(filters).length ? filters : { all: true };
}
