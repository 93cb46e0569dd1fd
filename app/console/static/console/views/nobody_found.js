// Requests for which nobody was found, the oldest first. Each stays until somebody has said what became of it.

import { secondsSince } from "../../shared/clock.js";
import { clockTime, duration } from "../../shared/format.js";
import { useStore, useTick } from "../../shared/store.js";
import { CallLink, Empty } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { BoardState } from "../board_state.js";
import { useConsole } from "../context.js";
import { isNobodyFound } from "../live_state.js";
import { OutcomeForm } from "../request/outcome_form.js";

// Each has a form, so they are shown in portions. In a queue, those behind come when those before are gone.
const SHOWN = 50;

export default function NobodyFound() {
  const { live } = useConsole();
  const { tasks, loaded, error } = useStore(live.store);
  useTick(30_000);
  const owed = [...tasks.values()].filter(isNobodyFound).sort(byEnd);
  return html`<section class="view">
    <h1>${word("view_nobody_found")}</h1>
    <p class="soft">${word("nobodyFoundAbout")}</p>
    ${!loaded && html`<${BoardState} error=${error} />`}
    ${loaded && !owed.length && html`<${Empty}>${word("nobodyFoundEmpty")}<//>`}
    <ol class="plain queue">${owed.slice(0, SHOWN).map((task) => html`<${Owed} key=${task.id} task=${task} />`)}</ol>
    ${owed.length > SHOWN && html`<p class="soft">${word("andMore", { count: owed.length - SHOWN })}</p>`}
  </section>`;
}

function byEnd(one, other) {
  return Date.parse(endOf(one)) - Date.parse(endOf(other));
}

function endOf(task) {
  return task.endedAt ?? task.createdAt;
}

function Owed({ task }) {
  const { router } = useConsole();
  const end = endOf(task);
  return html`<li class="card owed">
    <div class="stack">
      <div class="row apart">
        <h2><a href=${router.address(`requests/${task.id}`)}>${task.elder.name}</a></h2>
        <${CallLink} phone=${task.elder.phone} kind="main" />
      </div>
      <p class="small">${word("endedAfter", { time: clockTime(end), ago: duration(secondsSince(end)), asked: task.asked })}</p>
      ${task.note && html`<blockquote class="note">${task.note}</blockquote>`}
    </div>
    <${OutcomeForm} task=${task} />
  </li>`;
}
