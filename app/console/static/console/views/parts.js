// What several views are made of: choices in the address, facts, lists with more pages, files made in the page.

import { Button, Empty, Field, Read } from "../../shared/ui.js";
import { currentLocale, hasWord, word } from "../../shared/words.js";
import { html } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";

// A filter of the address as a selection. `options` are values; `wordOf` makes their words. Without `all` there is
// always one chosen.
export function FilterSelect({ name, label, value, options, wordOf, all = word("state_all") }) {
  const { router } = useConsole();
  return html`<${Field} label=${label}>${(control) => html`<select ...${control} value=${value} onChange=${(event) => router.filter({ [name]: event.target.value })}>
    ${all !== null && html`<option value="">${all}</option>`}
    ${options.map((option) => html`<option key=${option} value=${option}>${wordOf(option)}</option>`)}
  </select>`}<//>`;
}

export function FilterSearch({ name = "q", label, value }) {
  const { router } = useConsole();
  return html`<${Field} label=${label}>${(control) => html`<input ...${control} type="search" data-search value=${value} onInput=${(event) => router.filter({ [name]: event.target.value })} />`}<//>`;
}

// Two ways to see the same, of which one is chosen.
export function Choices({ label, options, chosen, onChoose }) {
  return html`<div class="row" role="group" aria-label=${label}>
    ${options.map(([value, text]) => html`<${Button} key=${value} kind="choice-button" aria-pressed=${String(value === chosen)} onClick=${() => onChoose(value)}>${text}<//>`)}
  </div>`;
}

// Names with values; those without a value are left out.
export function Facts({ of }) {
  const known = of.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${known.map(([name, value]) => html`<div key=${name}><dt class="soft small">${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

// A list of the API as `usePages` reads it.
export function Pages({ of, empty, children }) {
  return html`
    <${Read} of=${of}>${(items) => (items.length ? html`<ul class="plain entries">${items.map(children)}</ul>` : html`<${Empty}>${empty}<//>`)}<//>
    ${of.more && html`<div><${Button} onClick=${of.more}>${word("more")}<//></div>`}
  `;
}

export function Back({ to, children = word("backToList") }) {
  const { router } = useConsole();
  return html`<a class="button bare back-link" href=${router.address(to)}>← ${children}</a>`;
}

// The word of a code of the service, or the code itself where it has none.
export function wordOfCode(prefix, code, otherwise = code) {
  const key = `${prefix}_${code}`;
  return hasWord(key) ? word(key) : otherwise;
}

// Names of the service are written with points and underscores.
export function readableName(name) {
  const text = name.replaceAll(/[_.]/g, " ");
  return text.charAt(0).toLocaleUpperCase(currentLocale()) + text.slice(1);
}
