// The sentences of the elder's phone: one that says how things stand, and one below it that says what comes next.

import { secondsUntil } from "../shared/clock.js";
import { messageOf } from "../shared/ui.js";
import { word } from "../shared/words.js";

export function headline(view) {
  const { kind, name, turn } = view;
  if (kind === "asked" && turn > 1) return word("elder_askedTurn", { turn });
  if (kind === "asked") return name ? word("elder_asked", { name }) : word("elder_askedSomebody");
  if (kind === "refused") return messageOf(view.problem);
  return word(`elder_${kind}`, { name: name || word("somebody") });
}

export function detail(view, nowMs) {
  const { kind, name, task, turn } = view;
  if (kind !== "asked") return word(`elder_${kind}_next`, { name: name || word("somebody") });
  const minutes = Math.max(1, Math.ceil(secondsUntil(task.currentOffer.deadline, nowMs) / 60));
  if (turn > 1 && name) return word("elder_askedTurn_next", { name, minutes });
  return word("elder_asked_next", { minutes });
}
