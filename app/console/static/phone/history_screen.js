// The tasks of this student, by month.

import { dateAndTime, number } from "../shared/format.js";
import { Badge, Button, Empty, Failure, Loading } from "../shared/ui.js";
import { currentLocale, word } from "../shared/words.js";
import { html, useEffect, useState } from "../vendor/preact/preact.js";
import { byMonth } from "./history_months.js";

const KINDS = { COMPLETED: "good", CANCELLED: "", TIMED_OUT: "", ASSIGNED: "accent", STARTED: "accent", PENDING: "" };

export function HistoryScreen({ me, api }) {
  const [read, setRead] = useState({ tasks: [], next: null, error: null, reading: true });
  const more = async (cursor) => {
    setRead((before) => ({ ...before, reading: true, error: null }));
    try {
      const page = await api.listTasks({ limit: 50, ...(cursor ? { cursor } : {}) });
      setRead((before) => ({ tasks: [...before.tasks, ...page.items], next: page.nextCursor, error: null, reading: false }));
    } catch (error) {
      setRead((before) => ({ ...before, error, reading: false }));
    }
  };
  useEffect(() => void more(null), []);
  return html`<section class="stack">
    <h1>${word("history")}</h1>
    ${byMonth(read.tasks, me.id).map((month) => html`<${Month} key=${month.key} month=${month} me=${me} />`)}
    ${read.reading && html`<${Loading} />`}
    ${read.error && html`<${Failure} error=${read.error} retry=${() => more(read.next)} />`}
    ${!read.reading && !read.error && read.tasks.length === 0 && html`<${Empty}>${word("historyEmpty")}<//>`}
    ${read.next && !read.reading && html`<${Button} onClick=${() => more(read.next)}>${word("more")}<//>`}
  </section>`;
}

function Month({ month, me }) {
  const name = month.first.toLocaleDateString(currentLocale() === "en" ? "en-GB" : "tr-TR", { month: "long", year: "numeric" });
  return html`<section class="stack month">
    <div class="row apart">
      <h2>${name}</h2>
      ${month.helped > 0 && html`<span class="soft">${word("helpedTimes", { count: number(month.helped) })}</span>`}
    </div>
    <ul class="plain card">${month.tasks.map((task) => html`<${Entry} key=${task.id} task=${task} me=${me} />`)}</ul>
  </section>`;
}

function Entry({ task, me }) {
  const isMine = task.student?.id === me.id;
  return html`<li class="row apart entry">
    <span><strong>${task.elder.name}</strong><br /><span class="soft small numbers">${dateAndTime(task.createdAt)}</span></span>
    <${Badge} kind=${isMine ? KINDS[task.status] : ""}>${word(isMine ? `status_${task.status}` : "wasAsked")}<//>
  </li>`;
}
