// One dead letter in full: its message, each try, and what can be done.

import { dateAndTime } from "../../../shared/format.js";
import { Badge, Read, tell, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { AskFirst, Back, Facts, orTellRefusal, wordOfCode } from "../parts.js";
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
  const { status, actionPlanId, stepOrder, closedAt } = letter;
  const facts = [
    [word("channel"), wordOfCode("channel", letter.channelType)],
    [word("errorCode"), letter.errorCode],
    [word("failedAt"), dateAndTime(letter.failedAt)],
    [word("canSucceedLater"), word(letter.retryable ? "yes" : "no")],
    [word("closedAt"), closedAt && dateAndTime(closedAt)],
    [word("plan"), actionPlanId && word("planAndStep", { plan: actionPlanId, step: stepOrder })],
  ];
  return html`
    <div class="row apart">
      <h1>${reasonOf(letter.errorCode)}</h1>
      <${Badge} kind=${status === "OPEN" ? "warn" : ""}>${word(`letter_${status}`)}<//>
    </div>
    ${letter.errorMessage && html`<p>${letter.errorMessage}</p>`}
    ${status === "OPEN" && html`<${Deeds} letter=${letter} again=${again} />`}
    <${Facts} of=${facts} />
    ${letter.message && html`<${Message} message=${letter.message} />`}
  `;
}

function Message({ message }) {
  const { recipient, createdAt, expiresAt, attempts } = message;
  const facts = [
    [word("recipient"), recipientInWords(recipient)],
    [word("writtenAt"), dateAndTime(createdAt)],
    [word("expiresAt"), expiresAt && dateAndTime(expiresAt)],
  ];
  return html`<section class="card stack">
    <h2>${message.subject || word("message")}</h2>
    <blockquote class="note">${message.body}</blockquote>
    <${Facts} of=${facts} />
    ${attempts.length > 0 && html`<h3>${word("attempts")}</h3><ol class="plain entries">${attempts.map(attempt)}</ol>`}
  </section>`;
}

// "user:6" is a person; an address of another kind stays as it is.
function recipientInWords(recipient) {
  const id = /^user:(\d+)$/.exec(recipient ?? "")?.[1];
  return id ? word("userNumber", { id }) : recipient;
}

function attempt({ attempt: number, at, errorCode, outcome }) {
  return html`<li key=${`${number} ${at}`} class="entry small">
    <span>${dateAndTime(at)}</span>
    <span>${errorCode ? reasonOf(errorCode) : word(`attempt_${outcome}`)}</span>
  </li>`;
}

function Deeds({ letter, again }) {
  const { api } = useConsole();
  const run = async (deed, call) => {
    await orTellRefusal(async () => {
      await call(letter.id);
      tell(word(`done_${deed}`));
    });
    await again();
  };
  const redrive = () => run("redrive", api.redriveDeadLetter);
  const discard = () => run("discard", api.discardDeadLetter);
  return html`<div class="row">
    <${AskFirst} label=${word("letter_redrive")} question=${word("ask_letter_redrive")} kind="main" onConfirm=${redrive} />
    <${AskFirst} label=${word("letter_discard")} question=${word("ask_letter_discard")} kind="bad" onConfirm=${discard} />
  </div>`;
}
