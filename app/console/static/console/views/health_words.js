// What the service says of its parts, in the language of the page.

import { duration, number, share } from "../../shared/format.js";
import { hasWord, word } from "../../shared/words.js";

const IN_WORDS = { sentShare: share };
const SECONDS = /S$/;
const FEW_S = 10;

// Null for a part that this page does not know yet: then the service's own words are shown.
export function whatPartSays({ name, status, values }) {
  const key = `part_says_${name}`;
  if (!hasWord(key)) return hasWord(`part_${name}`) ? word(status === "down" ? "part_silent" : "part_answers") : null;
  if (!Object.keys(values).length) return word("part_unread");
  return word(key, Object.fromEntries(Object.entries(values).map(([one, value]) => [one, inWords(one, value)])));
}

function inWords(name, value) {
  if (IN_WORDS[name]) return IN_WORDS[name](value);
  if (!SECONDS.test(name)) return number(value);
  return value < FEW_S ? word("seconds", { count: number(Math.round(value * 10) / 10) }) : duration(value);
}
