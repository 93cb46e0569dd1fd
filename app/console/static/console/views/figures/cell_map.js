// Draws cells with their numbers on the map. It does not move: the table has the same, and it is read like a picture.

import L from "../../../vendor/leaflet/index.js";
import { onSchemeChange, readColours } from "../../map/map_colours.js";
import { drawNeighbourhood } from "../../map/neighbourhood.js";

// Half the height and width of a cell in degrees; the API counts by geohashes of six letters.
const HALF_LAT = 180 / 2 ** 15 / 2;
const HALF_LON = 360 / 2 ** 15 / 2;
const FAINTEST = 0.25;
const CLOSEST_ZOOM = 15;
const MOVES = ["dragging", "scrollWheelZoom", "doubleClickZoom", "boxZoom", "keyboard", "touchZoom"];
const STILL = Object.fromEntries(["attributionControl", "zoomControl", ...MOVES].map((name) => [name, false]));

export function openCellMap(element, cells, tileAddress) {
  const map = L.map(element, { ...STILL, preferCanvas: true });
  map.fitBounds(cells.map(boundsOf).flat(), { padding: [20, 20], maxZoom: CLOSEST_ZOOM, animate: false });
  const backdrop = tileAddress ? tiles(map, tileAddress) : drawNeighbourhood(map);
  const most = Math.max(...cells.map(({ count }) => count));
  const rectangles = cells.map((cell) => L.rectangle(boundsOf(cell), { interactive: false }).addTo(map));
  cells.forEach((cell) => numberAt(cell).addTo(map));
  const paint = () => {
    const colours = readColours(element);
    backdrop.paint(colours);
    rectangles.forEach((rectangle, index) => {
      const fillOpacity = FAINTEST + (cells[index].count / most) * FAINTEST * 2;
      rectangle.setStyle({ color: colours.bad, weight: 1, fillColor: colours.bad, fillOpacity });
    });
  };
  paint();
  const endScheme = onSchemeChange(paint);
  const resized = new ResizeObserver(() => map.invalidateSize());
  resized.observe(element);
  return () => {
    endScheme();
    resized.disconnect();
    map.remove();
  };
}

function tiles(map, address) {
  L.tileLayer(address, { maxZoom: 19 }).addTo(map);
  return { paint() {} };
}

function boundsOf({ lat, lon }) {
  return [
    [lat - HALF_LAT, lon - HALF_LON],
    [lat + HALF_LAT, lon + HALF_LON],
  ];
}

function numberAt({ lat, lon, count }) {
  const text = document.createElement("span");
  text.textContent = String(count);
  const icon = L.divIcon({ html: text, className: "cell-count", iconSize: [0, 0] });
  return L.marker([lat, lon], { icon, interactive: false, keyboard: false });
}
