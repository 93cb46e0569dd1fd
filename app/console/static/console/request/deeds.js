// What a coordinator can do with a request in its present state. What cannot be undone is asked first.

import { firstName } from "../../shared/format.js";
import { Button, Confirm, messageOf, tell } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useShortcut } from "../shortcuts.js";
import { AssignDialog } from "./assign_dialog.js";
import { possibleDeeds } from "./possible_deeds.js";

export function Deeds({ task, again }) {
  const [open, setOpen] = useState(null);
  const possible = possibleDeeds(task);
  const props = { task, again, onClose: () => setOpen(null) };
  useShortcut("a", "shortcut_assign", () => possible.includes("assign") && setOpen("assign"));
  const button = (deed) => {
    const kind = deed === "cancel" ? "bad" : "";
    return html`<${Button} key=${deed} kind=${kind} onClick=${() => setOpen(deed)}>${word(`deed_${deed}`)}<//>`;
  };
  return html`<div class="row deeds">
    ${possible.map(button)}
    ${open === "assign" && html`<${AssignDialog} ...${props} />`}
    ${open && open !== "assign" && html`<${ConfirmDeed} key=${open} deed=${open} ...${props} />`}
  </div>`;
}

// If another coordinator or a student is faster while the question is shown, it is not asked any more: the answer would
// be one to another question.
function ConfirmDeed({ deed, task, again, onClose }) {
  const run = useDeed(task, again);
  const [asked] = useState(() => questionOf(deed, task));
  const title = word(`deed_${deed}`);
  if (!possibleDeeds(task).includes(deed) || questionOf(deed, task) !== asked) {
    const props = { title, question: word("changedMeanwhile"), label: word("close"), onConfirm() {}, onClose };
    return html`<${Confirm} ...${props} />`;
  }
  const kind = deed === "cancel" ? "bad" : "main";
  return html`<${Confirm} title=${title} question=${asked} label=${title} kind=${kind} onConfirm=${() => run(deed)} onClose=${onClose} />`;
}

function questionOf(deed, task) {
  const student = task.student?.name ?? task.currentOffer?.studentName ?? "";
  return word(`ask_${deed}`, { elder: task.elder.name, student });
}

// Returns what runs a deed and tells how it ended. After a refusal everything is read again, because it means that
// something is not as it is shown.
export function useDeed(task, again) {
  const { api, live } = useConsole();
  const calls = {
    assign: (studentId) => api.assignTask(task.id, { studentId }),
    next: () => api.moveOn(task.id),
    release: () => api.releaseTask(task.id),
    cancel: () => api.cancelTask(task.id),
    complete: () => api.completeTask(task.id),
  };
  const run = async (deed, student = task.student) => {
    const names = { elder: firstName(task.elder.name), student: student?.name ?? "" };
    try {
      await calls[deed](student?.id);
      tell(word(`done_${deed}`, names), "good", undoOf(deed, student));
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
    live.refresh(task.id);
    await again();
  };
  const undoOf = (deed, student) => {
    // A student who had begun would have to begin again, so their task cannot be given back as it was.
    const opposite = { assign: "release", release: task.status === "ASSIGNED" ? "assign" : undefined }[deed];
    return opposite ? { label: word("undo"), run: () => run(opposite, student) } : null;
  };
  return run;
}
