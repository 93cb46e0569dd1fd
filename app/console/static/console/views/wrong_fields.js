// What is wrong with each field, from a problem of the service, in the language of the page where the code has words.

import { hasWord, word } from "../../shared/words.js";

export function wrongOf(error) {
  const found = {};
  for (const { field, code, message } of error?.fields ?? []) found[field] ??= sentenceOf(code, message);
  return found;
}

export function sentenceOf(code, message) {
  return hasWord(`wrong_${code}`) ? word(`wrong_${code}`, { message }) : message;
}
