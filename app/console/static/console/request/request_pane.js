// One request in full: the elder, what is happening, what a coordinator can do, who was asked, and what has happened.

import { serverNow } from "../../shared/clock.js";
import { useStore, useTick } from "../../shared/store.js";
import { Badge, CallLink, Empty, Failure, Loading } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useEffect, useRef } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { isNobodyFound, isOnBoard } from "../live_state.js";
import { badgeText, happening, kindOf, outcomeInWords, pressedAt } from "../request_words.js";
import { urgencyOf } from "../urgency.js";
import { AskedList } from "./asked_list.js";
import { Deeds } from "./deeds.js";
import { OutcomeForm } from "./outcome_form.js";
import { Timeline } from "./timeline.js";
import { useRequest } from "./use_request.js";

export default function RequestPane({ id, back }) {
  const { live } = useConsole();
  const request = useRequest(id);
  const known = useStore(live.store).tasks.get(id);
  const heading = useRef(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [id, Boolean(request.value)]);
  // The live state is newer than what was read, but it forgets a request that has ended.
  const task = request.value && { ...request.value.task, ...known };
  return html`<section class="pane request-pane" aria-labelledby="request-heading">
    <a class="button bare back" href=${back}>← ${word("backToList")}</a>
    ${request.error && html`<${NotRead} ...${request} />`}
    ${!task && request.reading && html`<${Loading} />`}
    ${task &&
    html`<div class="stack request-body">
      <${Head} task=${task} heading=${heading} />
      ${isNobodyFound(task) && html`<${OutcomeForm} task=${task} onDone=${request.again} />`}
      <${Deeds} task=${task} offers=${request.value.offers} again=${request.again} />
      <${AskedList} offers=${request.value.offers} task=${task} />
      <${Timeline} task=${task} offers=${request.value.offers} />
    </div>`}
  </section>`;
}

function NotRead({ error, again }) {
  if (error.status === 404) return html`<${Empty}>${word("problem_task_not_found")}<//>`;
  return html`<${Failure} error=${error} retry=${again} />`;
}

function Head({ task, heading }) {
  useTick(1000);
  const isOpen = isOnBoard(task);
  const urgency = urgencyOf(task, serverNow());
  return html`<div class="stack">
    <div class="row apart">
      <h1 id="request-heading" tabindex="-1" ref=${heading}>${task.elder.name}</h1>
      <${Badge} kind=${`numbers ${isOpen ? kindOf(urgency) : ""}`}>${isOpen ? badgeText(task, urgency) : word(`status_${task.status}`)}<//>
    </div>
    <p>${happening(task)}</p>
    <p class="soft small">${pressedAt(task)}</p>
    ${task.note && html`<blockquote class="note">${task.note}</blockquote>`}
    <div class="row">
      <${CallLink} phone=${task.elder.phone} kind="main" label=${word("callElder")} />
      ${task.student && html`<${CallLink} phone=${task.student.phone} label=${word("callStudent")} />`}
    </div>
    ${task.outcome && html`<p class="notice good">${outcomeInWords(task.outcome)}</p>`}
  </div>`;
}
