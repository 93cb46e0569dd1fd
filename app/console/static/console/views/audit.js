// The audit trail: who has done what, and what the rows were before and after.

import { dateAndTime } from "../../shared/format.js";
import { word } from "../../shared/words.js";
import { html, useEffect, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { usePages } from "../pages.js";
import { changesOf, shownValue } from "./audit/audit_changes.js";
import { Facts, Pages, readableName, wordOfCode } from "./parts.js";
import "./view_words.js";

const PAGE = 50;

export default function Audit() {
  const { api } = useConsole();
  const entries = usePages((cursor) => api.listAuditEntries({ cursor, limit: PAGE }), []);
  const names = useNames(entries.value ?? []);
  return html`<section class="view">
    <h1>${word("view_audit")}</h1>
    <p class="soft">${word("auditAbout")}</p>
    <${Pages} of=${entries} empty=${word("auditEmpty")}>${(entry) => html`<${Entry} key=${entry.id} entry=${entry} names=${names} />`}<//>
  </section>`;
}

function Entry({ entry, names }) {
  const { changes } = changesOf(entry.metadata);
  return html`<li class="entry audit-entry">
    <details>
      <summary class="entry-link">
        <strong>${wordOfCode("deed", entry.subject, readableName(entry.subject))}</strong>
        <span class="soft small">${authorOf(entry, names)} · ${dateAndTime(entry.writtenAt)}</span>
      </summary>
      <div class="stack audit-detail">
        <p lang="en">${entry.body}</p>
        <${Facts} of=${[[word("about"), entry.recipient], [word("entryNumber"), entry.id], [word("hash"), html`<code class="small">${entry.hash}</code>`]]} />
        ${changes.length ? changes.map((change, index) => html`<${Change} key=${index} change=${change} />`) : html`<p class="soft small">${word("noRowChanged")}</p>`}
      </div>
    </details>
  </li>`;
}

function Change({ change }) {
  return html`<div class="wide" tabindex="0" role="region" aria-label=${change.title}>
    <table class="table small">
      <caption>${change.title}</caption>
      <thead><tr><th scope="col">${word("column_field")}</th><th scope="col">${word("column_before")}</th><th scope="col">${word("column_after")}</th></tr></thead>
      <tbody>${change.fields.map(({ name, before, after }) => html`<tr key=${name}><th scope="row">${name}</th><td>${shownValue(before)}</td><td>${shownValue(after)}</td></tr>`)}</tbody>
    </table>
  </div>`;
}

function authorOf({ author }, names) {
  const id = /^user:(\d+)$/.exec(author ?? "")?.[1];
  if (id) return names.get(id) ?? word("userNumber", { id });
  return author ? wordOfCode("author", author) : word("author_unknown");
}

// The names of authors, each read once. Whoever is not there any more stays a number.
function useNames(entries) {
  const { api } = useConsole();
  const [names, setNames] = useState(new Map());
  const ids = [...new Set(entries.map(({ author }) => /^user:(\d+)$/.exec(author ?? "")?.[1]).filter(Boolean))];
  useEffect(() => {
    const missing = ids.filter((id) => !names.has(id));
    if (!missing.length) return;
    const read = async (id) => [id, (await api.getUser(id).catch(() => null))?.name];
    Promise.all(missing.map(read)).then((found) => setNames((now) => new Map([...now, ...found])));
  }, [ids.join()]);
  return names;
}
