// The texts of one template in both languages. Admins change them, and what was saved can be taken back.

import { Empty, Read, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html, useState } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back } from "../parts.js";
import { TemplateEditor } from "./template_editor.js";
import { TemplatePreview } from "./template_preview.js";
import { usePreview } from "./use_preview.js";

const LOCALES = ["tr", "en"];

export function Template({ templateKey }) {
  const { api, me } = useConsole();
  const templates = useRead(() => api.listTemplates({ key: templateKey, limit: LOCALES.length }), [templateKey]);
  const text = (template) => html`<${Text} key=${template.id} template=${template} again=${templates.again} />`;
  const show = ({ items }) => {
    if (!items.length) return html`<${Empty}>${word("noTemplate")}<//>`;
    const inOrder = LOCALES.flatMap((locale) => items.filter((one) => one.locale === locale));
    return html`<div class="texts">${inOrder.map(text)}</div>`;
  };
  return html`<section class="view">
    <${Back} to="plans/templates" />
    <h1>${templateKey}</h1>
    ${me.role !== "ADMIN" && html`<p class="soft small">${word("onlyAdmins")}</p>`}
    <${Read} of=${templates}>${show}<//>
  </section>`;
}

// A saved text has another time, and so an editor that begins anew.
function Text({ template, again }) {
  const { me } = useConsole();
  const { locale, updatedAt } = template;
  const [kept, keep] = useState(null);
  const more = { template, again, draft: kept?.before !== updatedAt ? kept?.draft : null };
  const editor = html`<${TemplateEditor} key=${updatedAt} ...${more} keep=${(draft) => keep({ draft, before: updatedAt })} />`;
  return html`<section class="card stack" aria-labelledby=${`text-${locale}`}>
    <h2 id=${`text-${locale}`}>${word(`language_${locale}`)}</h2>
    ${me.role === "ADMIN" ? editor : html`<${Stored} template=${template} />`}
  </section>`;
}

function Stored({ template }) {
  const { api } = useConsole();
  const { subject, body, locale } = template;
  const preview = usePreview(template, ({ variables }) => api.previewTemplate(template.id, { variables }));
  return html`
    ${subject && html`<p lang=${locale}><strong>${subject}</strong></p>`}
    <p lang=${locale}>${body}</p>
    <${TemplatePreview} preview=${preview} locale=${locale} />
  `;
}
