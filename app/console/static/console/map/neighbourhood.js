// The drawn neighbourhood under the map where no tiles are set: coast, parks, streets and names of Kadıköy, from a file
// of our own.

import L from "../../vendor/leaflet/index.js";

const DRAWING = new URL("../kadikoy.json", import.meta.url);
const WIDTHS = { motorway: 5, main: 4 };
const STREET = 2.5;
const NAMES_FROM_ZOOM = 13;
const LANES_FROM_ZOOM = 14;

// It has a canvas of its own, which is painted when the map moves and not when people do.
export function drawNeighbourhood(map) {
  const pane = map.createPane("backdrop");
  pane.style.zIndex = 150;
  const renderer = L.canvas({ pane: "backdrop", padding: 0.5 });
  const names = L.layerGroup();
  const lanes = L.layerGroup();
  const layers = [];
  let colours = null;

  const add = (layer, style, group = map) => layers.push({ layer: layer.addTo(group), style });
  const area = (points, style, group) => add(L.polygon(points, { renderer, interactive: false }), style, group);
  const line = (points, style, group) => add(L.polyline(points, { renderer, interactive: false }), style, group);
  const paint = () => colours && layers.forEach(({ layer, style }) => layer.setStyle(style(colours)));

  const draw = (drawing) => {
    area(drawing.sea, ({ water, coast }) => ({ stroke: true, color: coast, weight: 1, fillColor: water, fillOpacity: 1 }));
    drawing.parks.forEach((park) => area(park.area, ({ park: colour }) => ({ stroke: false, fillColor: colour, fillOpacity: 1 })));
    line(drawing.stream, ({ water }) => ({ color: water, weight: 4 }));
    line(drawing.lanes, ({ street }) => ({ color: street, weight: 1, opacity: 0.8 }), lanes);
    drawing.streets.forEach((street) => line(street.line, ({ street: color }) => ({ color, weight: WIDTHS[street.kind] ?? STREET })));
    line(drawing.railway, ({ coast }) => ({ color: coast, weight: 2, dashArray: "6 4" }));
    line(drawing.piers, ({ coast }) => ({ color: coast, weight: 2 }));
    drawing.quarters.forEach(({ name, at }) => nameLayer(name, at).addTo(names));
    paint();
    showByZoom();
  };

  const showByZoom = () => {
    toggle(map, names, map.getZoom() >= NAMES_FROM_ZOOM);
    toggle(map, lanes, map.getZoom() >= LANES_FROM_ZOOM);
  };

  map.on("zoomend", showByZoom);
  // Without the drawing the map still shows where people are.
  fetch(DRAWING).then(async (answer) => answer.ok && draw(await answer.json()), () => {});
  return {
    paint(now) {
      colours = now;
      paint();
    },
  };
}

function toggle(map, group, isShown) {
  if (isShown) group.addTo(map);
  else group.remove();
}

function nameLayer(name, at) {
  const element = document.createElement("span");
  element.textContent = name;
  const icon = L.divIcon({ html: element, className: "quarter", iconSize: [0, 0] });
  return L.marker(at, { icon, pane: "backdrop", interactive: false, keyboard: false });
}
