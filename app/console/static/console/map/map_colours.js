// The colours of the map, from the style sheet, so that the map is light or dark as the page is.

const NAMES = ["land", "water", "park", "street", "coast", "free", "asked", "busy", "accent", "warn", "bad", "ring"];

export function readColours(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--map-${name}`).trim()]));
}

// Calls `repaint` when the colour scheme changes; returns what ends that.
export function onSchemeChange(repaint) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", repaint);
  return () => dark.removeEventListener("change", repaint);
}
