// The words of the pages in Turkish and English. Each application brings its own; the words of `shared` are below.
// A value may be a function, for words that depend on numbers.

import { SHARED_EN } from "./words_en.js";
import { SHARED_TR } from "./words_tr.js";

const words = { tr: { ...SHARED_TR }, en: { ...SHARED_EN } };
let locale = "tr";

export function addWords(tr, en) {
  Object.assign(words.tr, tr);
  Object.assign(words.en, en);
}

export function setLocale(wanted) {
  locale = wanted === "en" ? "en" : "tr";
  document.documentElement.lang = locale;
}

export function currentLocale() {
  return locale;
}

// `{name}` in a text stands for a value. A key without words is a mistake of ours, so it is shown as it is.
export function word(key, values = {}) {
  const found = words[locale][key];
  if (found === undefined) return key;
  if (typeof found === "function") return found(values);
  return found.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

export function hasWord(key) {
  return words[locale][key] !== undefined;
}
