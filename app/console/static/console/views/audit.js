// The audit trail: who has done what, and what the rows were before and after.

import { dateAndTime } from "../../shared/format.js";
import { Button, Empty } from "../../shared/ui.js";
import { word } from "../../shared/words.js";
import { html, useEffect, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { useDelayed } from "../delayed.js";
import { usePages } from "../pages.js";
import { changesOf, shownValue } from "./audit/audit_changes.js";
import { AuditFilters } from "./audit/audit_filters.js";
import { missingIn, queryOf, subjectOf } from "./audit/audit_query.js";
import { deedOf } from "./audit/deed_names.js";
import { Facts, Pages, wordOfCode } from "./parts.js";
import { wrongOf } from "./wrong_fields.js";
import "./view_words.js";

const PAGE = 50;

export default function Audit({ place: { filters } }) {
  const { api } = useConsole();
  const asked = useDelayed(JSON.stringify(queryOf(filters)));
  const entries = usePages((cursor) => api.listAuditEntries({ ...JSON.parse(asked), cursor, limit: PAGE }), [asked]);
  const names = useNames(entries.value ?? [], filters.author);
  const refused = wrongOf(entries.error);
  const missing = Object.entries(missingIn(filters)).map(([name, key]) => [name, word(key)]);
  const wrong = { ...refused, ...Object.fromEntries(missing) };
  const row = (entry) => html`<${Entry} key=${entry.id} entry=${entry} names=${names} />`;
  const empty = word(asked === "{}" ? "auditEmpty" : "auditNoneMatches");
  return html`<section class="view">
    <h1>${word("view_audit")}</h1>
    <p class="soft">${word("auditAbout")}</p>
    <${AuditFilters} filters=${filters} wrong=${wrong} names=${names} />
    ${Object.keys(refused).length
      ? html`<div role="alert"><${Empty}>${word("filterWrong")}<//></div>`
      : html`<${Pages} of=${entries} empty=${empty}>${row}<//>`}
  </section>`;
}

function Entry({ entry, names }) {
  const { id, subject, body, recipient, writtenAt, hash } = entry;
  const changes = changesOf(entry.metadata);
  const facts = [
    [word("about"), recipient],
    [word("entryNumber"), id],
    [word("hash"), html`<code class="small">${hash}</code>`],
  ];
  return html`<li class="entry audit-entry">
    <details>
      <summary class="entry-link">
        <strong>${wordOfCode("deed", deedOf(subject), subject)}</strong>
        <span class="soft small">${authorOf(entry, names)} · ${dateAndTime(writtenAt)}</span>
      </summary>
      <div class="stack audit-detail">
        <p lang="en">${body}</p>
        <${Facts} of=${facts} />
        ${changes.length ? changes.map(table) : html`<p class="soft small">${word("noRowChanged")}</p>`}
        <${MoreLikeIt} entry=${entry} />
      </div>
    </details>
  </li>`;
}

// What else the same author has done, and what else was done to the same.
function MoreLikeIt({ entry: { author, recipient } }) {
  const { router } = useConsole();
  const about = subjectOf(recipient);
  const link = (text, filters) => html`<a class="button" href=${router.address("audit", filters)}>${text}</a>`;
  return html`<div class="row">
    ${author && link(word("auditOfAuthor"), { author })}
    ${about && link(word("auditOfSubject"), about)}
  </div>`;
}

const HEADINGS = ["field", "before", "after"];

function table({ title, fields }, index) {
  const row = ({ name, before, after }) => html`<tr key=${name}>
    <th scope="row">${name}</th><td>${shownValue(before)}</td><td>${shownValue(after)}</td>
  </tr>`;
  const headings = HEADINGS.map((name) => html`<th key=${name} scope="col">${word(`column_${name}`)}</th>`);
  return html`<div key=${index} class="wide" tabindex="0" role="region" aria-label=${title}>
    <table class="table small">
      <caption>${title}</caption>
      <thead><tr>${headings}</tr></thead>
      <tbody>${fields.map(row)}</tbody>
    </table>
  </div>`;
}

function authorOf(entry, names) {
  const id = userIn(entry);
  if (id) return names.get(id) ?? word("userNumber", { id });
  return entry.author ? wordOfCode("author", entry.author) : word("author_unknown");
}

function userIn({ author }) {
  return /^user:(\d+)$/.exec(author ?? "")?.[1];
}

// The names of authors, each read once. Whoever is not there any more stays a number.
function useNames(entries, author) {
  const { api } = useConsole();
  const [names, setNames] = useState(new Map());
  const ids = [...new Set([...entries, { author }].map(userIn).filter(Boolean))];
  useEffect(() => {
    const missing = ids.filter((id) => !names.has(id));
    if (!missing.length) return;
    const read = async (id) => [id, (await api.getUser(id).catch(() => null))?.name];
    Promise.all(missing.map(read)).then((found) => setNames((now) => new Map([...now, ...found])));
  }, [ids.join()]);
  return names;
}
