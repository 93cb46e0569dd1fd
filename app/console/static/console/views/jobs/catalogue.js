// The scripts that can be run.

import { Badge, Empty, Read, useRead } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { html } from "../../../vendor/preact/preact.js";
import { useConsole } from "../../context.js";
import { Back, readableName } from "../parts.js";

export function Catalogue() {
  const { api } = useConsole();
  const scripts = useRead(() => api.listScripts(), []);
  return html`<section class="view">
    <${Back} to="jobs" />
    <h1>${word("newJob")}</h1>
    <${Read} of=${scripts}>${({ items }) => (items.length ? html`<ul class="plain entries">${items.map((script) => html`<${Script} key=${script.name} script=${script} />`)}</ul>` : html`<${Empty} />`)}<//>
  </section>`;
}

function Script({ script }) {
  const { router } = useConsole();
  const text = html`<strong>${readableName(script.name)}</strong><span class="soft small" lang="en">${script.error ?? script.summary}</span>`;
  return html`<li class="entry">
    ${script.error ? html`<span class="entry-text">${text}</span><${Badge} kind="bad">${word("scriptBroken")}<//>` : html`<a class="entry-link" href=${router.address(`jobs/new/${script.name}`)}>${text}</a>`}
    ${!script.isShipped && html`<${Badge}>${word("scriptOwn")}<//>`}
  </li>`;
}
