// The dative of Turkish names: "Ahmet'e", "Ayşe'ye", "Murat'a". The suffix follows the last vowel, and a "y" stands
// before it if the name ends with a vowel.

const BACK = "aıouâû";
const FRONT = "eiöüî";
// Loan words whose last "l" is spoken at the front of the mouth, so that a front vowel follows.
const SOFT_L = new Set(
  "bilal celal cemal hilal iclal ikbal kemal meral neval nevval nihal resul şevval zuhal zülal".split(" "),
);

export function dative(name) {
  return `${name}'${suffix(name.trim())}`;
}

function suffix(name) {
  const letters = lettersOf(name);
  const vowels = [...letters].filter((letter) => BACK.includes(letter) || FRONT.includes(letter));
  const last = vowels.at(-1);
  const isBack = last !== undefined && BACK.includes(last) && !SOFT_L.has(letters.split(" ").at(-1));
  const endsWithVowel = last !== undefined && letters.endsWith(last);
  return `${endsWithVowel ? "y" : ""}${isBack ? "a" : "e"}`;
}

// Letters of other languages lose their marks ("é" is read as "e"); those of Turkish keep theirs.
function lettersOf(name) {
  const lower = name.toLocaleLowerCase("tr").replace(/[^\p{L}\p{M} ]/gu, "").trim();
  return [...lower.normalize("NFC")].map((letter) => (/[a-zçğıöşüâîû ]/u.test(letter) ? letter : plain(letter))).join("");
}

function plain(letter) {
  return letter.normalize("NFD")[0];
}
