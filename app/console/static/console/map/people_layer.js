// Draws elders with an open request and students, those who are near each other as one circle with a number.

import { serverNow } from "../../shared/clock.js";
import L from "../../vendor/leaflet/index.js";
import { fewOrClustered } from "./clusters.js";
import { keyedLayers, numberIcon, textTooltip } from "./keyed_layers.js";
import { elderPoints, studentPoints } from "./map_points.js";

const SEEN_AROUND = 0.25;
const CLOSER_BY = 2;
const CLOSEST = 18;
// Elders lie above students.
const MARKER = { elder: { keyboard: false, zIndexOffset: 1000 }, student: { keyboard: false } };

// `describe(point)` is the text of a tooltip, `open(point)` what a click does.
export function peopleLayer(map, { describe, open }) {
  const layers = keyedLayers(map);
  return ({ tasks, students, current }, colours) => {
    const near = map.getBounds().pad(SEEN_AROUND);
    const grouped = (points) => fewOrClustered(points.filter(({ lat, lon }) => near.contains([lat, lon])).map(inPixels));
    const layersOf = (kind, groups) =>
      groups.map((group) => (group.points.length > 1 ? cluster(kind, group) : single(kind, group.points[0])));
    // Elders come last, so that they lie above students.
    layers.show([
      ...layersOf("student", grouped(studentPoints(students.values()))),
      ...layersOf("elder", grouped(elderPoints(tasks.values(), serverNow()))),
    ]);

    function inPixels(point) {
      const { x, y } = map.project([point.lat, point.lon]);
      return { ...point, x, y };
    }

    function single(kind, point) {
      const look = lookOf(point, colours, point.id === current);
      const place = [point.lat, point.lon];
      return {
        key: `${kind}:${point.id}`,
        make() {
          const layer = L.circleMarker(place, look).bindTooltip(({ point: now }) => textTooltip(describe(now)));
          layer.point = point;
          return layer.on("click", () => open(layer.point));
        },
        change(layer) {
          layer.point = point;
          layer.setLatLng(place).setStyle(look);
        },
      };
    }

    function cluster(kind, { key, x, y, points }) {
      const place = map.unproject([x, y]);
      const look = points.some(({ urgency }) => urgency === "nobody_found") ? "bad" : `${kind}s`;
      const closer = () => map.setView(place, Math.min(map.getZoom() + CLOSER_BY, CLOSEST));
      return {
        // The number and the look are part of the key, because the picture of a marker is made once.
        key: `${kind}:${map.getZoom()}:${key}:${points.length}:${look}`,
        make: () => L.marker(place, { icon: numberIcon(points.length, look), ...MARKER[kind] }).on("click", closer),
        change: (layer) => layer.setLatLng(place),
      };
    }
  };
}

function lookOf(point, colours, isCurrent) {
  if (point.kind === "elder") {
    const colour = colours[point.colour];
    const plain = { radius: 9, color: colours.ring, fillColor: colour, weight: 2, fillOpacity: 1 };
    return isCurrent ? { ...plain, radius: 14, color: colour, weight: 4, fillOpacity: 0.45 } : plain;
  }
  const colour = colours[point.state];
  // The state does not depend on the colour alone: those who are not free are rings.
  if (point.state === "free") return { radius: 6, color: colours.ring, fillColor: colour, weight: 2, fillOpacity: 1 };
  return { radius: 5, color: colour, fillColor: colours.ring, weight: 3, fillOpacity: 0.9 };
}
