// What somebody has chosen in this browser, such as silence. Nothing about people is kept here.

export function readChoice(name, otherwise, storage = globalThis.localStorage) {
  try {
    return JSON.parse(storage.getItem(`yaninda.console.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

// Browsers that refuse storage forget the choice with the page.
export function writeChoice(name, value, storage = globalThis.localStorage) {
  try {
    storage.setItem(`yaninda.console.${name}`, JSON.stringify(value));
  } catch {
    return;
  }
}
