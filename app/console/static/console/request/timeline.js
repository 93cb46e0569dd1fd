// What has happened to a request, in order.

import { clockTime, dateAndTime } from "../../shared/format.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { outcomeInWords } from "../request_words.js";
import { reasonInWords } from "./reasons.js";
import { timelineSteps } from "./timeline_steps.js";

export function Timeline({ task, offers }) {
  return html`<section class="stack">
    <h2>${word("whatHappened")}</h2>
    <ol class="plain timeline small">
      ${timelineSteps(task, offers).map(
        (step) => html`<li key=${step.index}>
          <time class="soft numbers" dateTime=${step.at} title=${dateAndTime(step.at)}>${clockTime(step.at)}</time>
          <span>${stepInWords(step)}</span>
        </li>`,
      )}
    </ol>
  </section>`;
}

function stepInWords({ what, name, reason, distanceM, outcome }) {
  if (outcome) return word("step_outcome", { outcome: outcomeInWords(outcome) });
  const because = reason ? ` (${reasonInWords(reason, { distanceM })})` : "";
  return `${word(`step_${what}`, { name: name ?? "" })}${because}`;
}
