// The words of scripts in the language of the page, as far as there are some: otherwise those that a script declares, which
// are English. `lang` is for readers that must know it.

import { currentLocale } from "../../../shared/words.js";
import { SCRIPTS_TR } from "./scripts_tr.js";

const DECLARED = "en";

export function scriptTitle(name) {
  return known(name)?.title ?? readableName(name);
}

export function scriptWords({ name, summary, description }) {
  const words = known(name);
  return words ? { summary: words.summary, description: words.description } : { summary, description, lang: DECLARED };
}

export function parameterWords(script, { name, hint = null }) {
  const words = known(script)?.params[name];
  return words ? { label: words[0], hint: words[1] } : { label: readableName(name), hint, lang: DECLARED };
}

function known(name) {
  return currentLocale() === "tr" && Object.hasOwn(SCRIPTS_TR, name) ? SCRIPTS_TR[name] : undefined;
}

function readableName(name) {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
