// Layers of the map by key: what is new is added, what is gone is removed, and what stays is changed in place.

import L from "../../vendor/leaflet/index.js";

export function keyedLayers(map) {
  const layers = new Map();
  return {
    // `wanted` is a list of `{ key, make(), change(layer) }`.
    show(wanted) {
      const keys = new Set(wanted.map(({ key }) => key));
      for (const [key, layer] of layers) {
        if (keys.has(key)) continue;
        layer.remove();
        layers.delete(key);
      }
      for (const { key, make, change } of wanted) {
        const layer = layers.get(key);
        if (layer) change(layer);
        else layers.set(key, make().addTo(map));
      }
    },
  };
}

// Text only: whatever people have written is never markup.
export function textTooltip(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element;
}

// A circle with a number, for several points.
export function numberIcon(count, look) {
  const element = document.createElement("span");
  element.textContent = String(count);
  const size = count < 10 ? 30 : count < 100 ? 36 : 44;
  return L.divIcon({ html: element, className: `cluster ${look}`, iconSize: [size, size] });
}
