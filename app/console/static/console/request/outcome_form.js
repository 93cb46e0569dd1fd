// What became of a request for which nobody was found. Until somebody says it, the request stays.

import { Button, messageOf, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { SelectField, TextField } from "../form_parts.js";

export const OUTCOMES = ["HELPED_BY_PHONE", "HELPED_BY_OTHERS", "NOT_NEEDED", "NOT_REACHED", "OTHER"];
const LONGEST_NOTE = 500;

export function OutcomeForm({ task, onDone }) {
  const [outcome, setOutcome] = useState("");
  const [note, setNote] = useState("");
  const [wrong, setWrong] = useState(null);
  const say = useOutcome(task, onDone);
  const save = () => (outcome ? say({ outcome, note: note.trim() || null }) : setWrong(word("required")));
  const select = (code) => {
    setOutcome(code);
    setWrong(null);
  };
  const options = [
    { value: "", text: word("choose") },
    ...OUTCOMES.map((code) => ({ value: code, text: word(`outcome_${code}`) })),
  ];
  return html`<form class="outcome" onSubmit=${(event) => event.preventDefault()}>
    <${SelectField} label=${word("whatBecame")} value=${outcome} options=${options} onSelect=${select} wrong=${wrong} />
    <${TextField} label=${word("noteField")} value=${note} onText=${setNote} maxlength=${LONGEST_NOTE} />
    <${Button} kind="main" onClick=${save}>${word("saveOutcome")}<//>
  </form>`;
}

function useOutcome(task, onDone) {
  const { api, live } = useConsole();
  return async (said) => {
    try {
      await api.sayOutcome(task.id, said);
      tell(word("done_outcome", { elder: task.elder.name }));
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
    live.refresh(task.id);
    await onDone?.();
  };
}
