// Templates: their keys, and the variables that their texts name.

// One entry for each key, in the order of keys, with the subject in Turkish if there is one.
export function keysOf(templates) {
  const found = new Map();
  for (const { key, locale, subject } of templates) {
    const known = found.get(key) ?? { key, subject: "", locales: [] };
    const isBetter = locale === "tr" || !known.subject;
    const locales = [...known.locales, locale].sort().reverse();
    found.set(key, { key, subject: isBetter ? subject : known.subject, locales });
  }
  return [...found.values()].sort((one, other) => one.key.localeCompare(other.key));
}

const BLOCKS = /\{[{%](.*?)[%}]\}/gs;
const TEXTS = /'[^']*'|"[^"]*"/g;
const NAMES = /(?<![.\w|])[a-z_]\w*/gi;
const OWN = new Set("if elif else endif for endfor in not and or is none true false defined loop".split(" "));

// Names in the blocks of both texts, without words of the language of templates, filters and members.
export function variablesOf(...texts) {
  const blocks = texts.flatMap((text) => [...text.matchAll(BLOCKS)].map(([, inside]) => inside.replaceAll(TEXTS, "")));
  const names = blocks.flatMap((block) => block.replaceAll(/\|\s*\w+/g, "").match(NAMES) ?? []);
  return [...new Set(names.filter((name) => !OWN.has(name.toLowerCase())))];
}

const SAMPLES = { student: "Ahmet", elder: "Ayşe", phone: "+90 555 010 00 02", minutes: 10, seconds: 0, code: "123456" };

export function sampleOf(name) {
  return String(SAMPLES[name] ?? 3);
}

// Numbers are sent as numbers, because a template may compare them.
export function valueOf(written) {
  return /^(0|[1-9]\d{0,8})$/.test(written.trim()) ? Number(written) : written;
}
