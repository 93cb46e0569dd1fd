// Draws live offers: a thin line from elder to student, and a thick one that becomes shorter with the time to answer.

import { serverNow } from "../../shared/clock.js";
import L from "../../vendor/leaflet/index.js";
import { keyedLayers } from "./keyed_layers.js";
import { offerLines } from "./map_points.js";
import { endOfLine, longestTtlMs, shareLeft } from "./offer_line.js";

// More would cover the map and say nothing.
const MOST_LINES = 150;

export function offersLayer(map) {
  const layers = keyedLayers(map);
  let ttlMs = 0;
  return ({ tasks, students, current }, colours) => {
    const now = serverNow();
    ttlMs = longestTtlMs(tasks.values(), now, ttlMs);
    const near = map.getBounds();
    const inSight = offerLines(tasks.values(), students).filter(({ elder }) => near.contains([elder.lat, elder.lon]));
    const lines = inSight.length > MOST_LINES ? inSight.filter(({ id }) => id === current) : inSight;
    layers.show(lines.flatMap((line) => twoLines(line, shareLeft(line.deadline, now, ttlMs), colours.asked)));
  };
}

function twoLines({ id, elder, student }, share, color) {
  return [
    line(`way:${id}`, elder, student, { color, weight: 1, dashArray: "2 5", opacity: 0.8 }),
    line(`time:${id}`, elder, endOfLine(elder, student, share), { color, weight: 4, opacity: 0.9 }),
  ];
}

function line(key, from, to, look) {
  const places = [
    [from.lat, from.lon],
    [to.lat, to.lon],
  ];
  return {
    key,
    make: () => L.polyline(places, { ...look, interactive: false }),
    change: (layer) => layer.setLatLngs(places).setStyle(look),
  };
}
