// One dead letter in full: its message, each try, and what can be done.

import { dateAndTime } from "../../../shared/format.js";
import { Badge, Button, Confirm, Read, messageOf, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back, Facts, wordOfCode } from "../parts.js";
import { reasonOf } from "./reasons.js";

export function DeadLetter({ id }) {
  const { api } = useConsole();
  const letter = useRead(() => readLetter(api, id), [id]);
  return html`<section class="view">
    <${Back} to="dead-letters" />
    <${Read} of=${letter}>${(found) => html`<${Found} letter=${found} again=${letter.again} />`}<//>
  </section>`;
}

// A step that failed before it became a message has none, and old messages are forgotten.
async function readLetter(api, id) {
  const letter = await api.getDeadLetter(id);
  if (!letter.notificationId) return { ...letter, message: null };
  const message = await api.getNotification(letter.notificationId).catch((error) => {
    if (error.status !== 404) throw error;
    return null;
  });
  return { ...letter, message };
}

function Found({ letter, again }) {
  return html`
    <div class="row apart">
      <h1>${reasonOf(letter.errorCode)}</h1>
      <${Badge} kind=${letter.status === "OPEN" ? "warn" : ""}>${word(`letter_${letter.status}`)}<//>
    </div>
    ${letter.errorMessage && html`<p>${letter.errorMessage}</p>`}
    ${letter.status === "OPEN" && html`<${Deeds} letter=${letter} again=${again} />`}
    <${Facts} of=${[
      [word("channel"), wordOfCode("channel", letter.channelType)],
      [word("errorCode"), letter.errorCode],
      [word("failedAt"), dateAndTime(letter.failedAt)],
      [word("canSucceedLater"), word(letter.retryable ? "yes" : "no")],
      [word("closedAt"), letter.closedAt && dateAndTime(letter.closedAt)],
      [word("plan"), letter.actionPlanId && word("planAndStep", { plan: letter.actionPlanId, step: letter.stepOrder })],
    ]} />
    ${letter.message && html`<${Message} message=${letter.message} />`}
  `;
}

function Message({ message }) {
  return html`<section class="card stack">
    <h2>${message.subject || word("message")}</h2>
    <blockquote class="note">${message.body}</blockquote>
    <${Facts} of=${[
      [word("recipient"), message.recipient],
      [word("writtenAt"), dateAndTime(message.createdAt)],
      [word("expiresAt"), message.expiresAt && dateAndTime(message.expiresAt)],
    ]} />
    ${message.attempts.length > 0 &&
    html`<h3>${word("attempts")}</h3>
      <ol class="plain entries">${message.attempts.map((one) => html`<li key=${one.attempt + one.at} class="entry small"><span>${dateAndTime(one.at)}</span><span>${one.errorCode ? reasonOf(one.errorCode) : word(`attempt_${one.outcome}`)}</span></li>`)}</ol>`}
  </section>`;
}

function Deeds({ letter, again }) {
  const { api } = useConsole();
  const [asked, setAsked] = useState(null);
  const calls = { redrive: () => api.redriveDeadLetter(letter.id), discard: () => api.discardDeadLetter(letter.id) };
  const run = async () => {
    try {
      await calls[asked]();
      tell(word(`done_${asked}`));
    } catch (error) {
      if (error.status !== 409 && error.status !== 404) throw error;
      tell(word("refused", { why: messageOf(error) }), "warn");
    }
    await again();
  };
  return html`<div class="row">
    <${Button} kind="main" onClick=${() => setAsked("redrive")}>${word("letter_redrive")}<//>
    <${Button} kind="bad" onClick=${() => setAsked("discard")}>${word("letter_discard")}<//>
    ${asked && html`<${Confirm} title=${word(`letter_${asked}`)} question=${word(`ask_letter_${asked}`)} label=${word(`letter_${asked}`)} kind=${asked === "discard" ? "bad" : "main"} onConfirm=${run} onClose=${() => setAsked(null)} />`}
  </div>`;
}
