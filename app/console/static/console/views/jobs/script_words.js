// What a script and its parameters are called in the language of the page.

import { currentLocale } from "../../../shared/words.js";
import { readableName } from "../parts.js";
import { SCRIPTS_TR } from "./script_words_tr.js";

// A script of an institution may have the name of none of ours, so its name is enough to know one of ours.
function wordsOf(name) {
  return currentLocale() === "tr" && Object.hasOwn(SCRIPTS_TR, name) ? SCRIPTS_TR[name] : null;
}

export function titleOfScript(name) {
  return wordsOf(name)?.title ?? readableName(name);
}

// `lang` is that of the text where it is not the page's.
export function aboutScript({ name, summary, description, isShipped }) {
  const own = isShipped ? wordsOf(name) : null;
  return own ? { summary: own.summary, description: own.description } : { summary, description, lang: isShipped ? "en" : undefined };
}

export function labelOfParameter(script, name) {
  return wordsOf(script)?.parameters[name]?.[0] ?? readableName(name);
}

export function hintOfParameter(script, name, hint) {
  return wordsOf(script)?.parameters[name]?.[1] ?? hint;
}
