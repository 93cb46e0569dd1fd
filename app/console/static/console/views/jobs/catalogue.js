// The scripts that can be run.

import { Badge, Empty, Read, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back, EntryLink } from "../parts.js";
import { aboutScript, titleOfScript } from "./script_words.js";

export function Catalogue() {
  const { api } = useConsole();
  const scripts = useRead(() => api.listScripts(), []);
  return html`<section class="view">
    <${Back} to="jobs" />
    <h1>${word("newJob")}</h1>
    <${Read} of=${scripts}>${({ items }) =>
      items.length ? html`<ul class="plain entries">${items.map(row)}</ul>` : html`<${Empty} />`}<//>
  </section>`;
}

function row(script) {
  const { name, error, isShipped } = script;
  const title = titleOfScript(name);
  const { summary, lang } = aboutScript(script);
  return html`<li key=${name} class="entry">
    ${error
      ? html`<span class="entry-text"><strong>${title}</strong><span class="soft small" lang="en">${error}</span></span>`
      : html`<${EntryLink} to=${`jobs/new/${name}`} title=${title} about=${summary} lang=${lang} />`}
    ${error && html`<${Badge} kind="bad">${word("scriptBroken")}<//>`}
    ${!isShipped && html`<${Badge}>${word("scriptOwn")}<//>`}
  </li>`;
}
