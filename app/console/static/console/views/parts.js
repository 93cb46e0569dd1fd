// What several views are made of: filters in the address, facts, lists with more pages, deeds that are asked first.

import { Button, Confirm, Empty, Field, Read, messageOf, tell } from "../../shared/ui.js";
import { hasWord, word } from "../../shared/words.js";
import { html, useState } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";
import { SearchField, SelectField } from "../form_parts.js";

// A filter of the address. `options` are values, and `wordOf` makes their words. Without `all` there is always one.
export function FilterSelect({ name, label, value, options, wordOf, all = word("state_all"), wrong = null }) {
  const { router } = useConsole();
  const shown = options.map((option) => ({ value: option, text: wordOf(option) }));
  const offered = all === null ? shown : [{ value: "", text: all }, ...shown];
  const choose = (chosen) => router.filter({ [name]: chosen });
  return html`<${SelectField} label=${label} wrong=${wrong} value=${value} options=${offered} onSelect=${choose} />`;
}

export function FilterSearch({ name = "q", label, value }) {
  const { router } = useConsole();
  const onSearch = (text) => router.filter({ [name]: text });
  return html`<${SearchField} label=${label} value=${value} onSearch=${onSearch} data-search />`;
}

// Names with values; those without a value are left out.
export function Facts({ of }) {
  const known = of.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">
    ${known.map(([name, value]) => html`<div key=${name}><dt class="soft small">${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

// A list of the API as `usePages` reads it.
export function Pages({ of, empty, children }) {
  const list = (items) => html`<ul class="plain entries">${items.map(children)}</ul>`;
  return html`
    <${Read} of=${of}>${(items) => (items.length ? list(items) : html`<${Empty}>${empty}<//>`)}<//>
    ${of.more && html`<div><${Button} onClick=${of.more}>${word("more")}<//></div>`}
  `;
}

// An entry of a list that leads to more about it.
export function EntryLink({ to, title, about, lang = undefined }) {
  const { router } = useConsole();
  return html`<a class="entry-link" href=${router.address(to)}>
    <strong>${title}</strong>
    <span class="soft small" lang=${lang}>${about}</span>
  </a>`;
}

export function Back({ to, children = word("backToList") }) {
  const { router } = useConsole();
  return html`<a class="button bare back-link" href=${router.address(to)}>← ${children}</a>`;
}

// A button for a deed that cannot be undone, so that it is asked first.
export function AskFirst({ label, question, kind = "", onConfirm, ...more }) {
  const [isAsked, setAsked] = useState(false);
  const close = () => setAsked(false);
  const dialog = html`<${Confirm}
    title=${label}
    question=${question}
    label=${label}
    kind=${kind || "main"}
    onConfirm=${onConfirm}
    onClose=${close}
  />`;
  return html`<${Button} kind=${kind} onClick=${() => setAsked(true)} ...${more}>${label}<//>${isAsked && dialog}`;
}

// What is refused because somebody else was faster is told. Other failures are told by the button.
export async function orTellRefusal(run) {
  try {
    await run();
  } catch (error) {
    if (error.status !== 409 && error.status !== 404) throw error;
    tell(word("refused", { why: messageOf(error) }), "warn");
  }
}

export function LabelledInput({ label, wrong = null, hint = null, ...more }) {
  return html`<${Field} label=${label} wrong=${wrong} hint=${hint}>${(control) => html`
    <input ...${control} ...${more} />
  `}<//>`;
}

export function LabelledArea({ label, wrong = null, hint = null, ...more }) {
  return html`<${Field} label=${label} wrong=${wrong} hint=${hint}>${(control) => html`
    <textarea ...${control} ...${more}></textarea>
  `}<//>`;
}

// The word of a code of the service, or the code itself where it has none.
export function wordOfCode(prefix, code, otherwise = code) {
  const key = `${prefix}_${code}`;
  return hasWord(key) ? word(key) : otherwise;
}

// Names of scripts and parameters are English, in every language of the page.
export function readableName(name) {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
