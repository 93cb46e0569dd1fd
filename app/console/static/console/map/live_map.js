// The map with what happens now. Leaflet draws points and lines on one canvas, so a thousand people move smoothly.

import L from "../../vendor/leaflet/index.js";
import { onSchemeChange, readColours } from "./map_colours.js";
import { drawNeighbourhood } from "./neighbourhood.js";
import { offersLayer } from "./offers_layer.js";
import { peopleLayer } from "./people_layer.js";

const KADIKOY = { centre: [40.988, 29.03], zoom: 14 };
const CLOSE_ZOOM = 16;
const AROUND = 0.25;

// The part of the world that was shown last, for whoever comes back to the map.
let lastView = null;

// `on.open(point)` is a click, `on.moved(bounds)` comes at first and after each move.
export function openLiveMap(element, { settings, describe, on }) {
  const { centre, zoom } = lastView ?? KADIKOY;
  const map = L.map(element, { preferCanvas: true, attributionControl: false, zoomControl: false, minZoom: 3 });
  map.setView(centre, zoom, { animate: false });
  const backdrop = settings.tileAddress ? tiles(map, settings.tileAddress) : drawNeighbourhood(map);
  const paintOffers = offersLayer(map);
  const paintPeople = peopleLayer(map, { describe, open: on.open });
  let colours = readColours(element);
  let focused = null;
  let shown = { tasks: new Map(), students: new Map(), current: null };

  const paint = () => {
    paintOffers(shown, colours);
    paintPeople(shown, colours);
  };
  const repaint = () => {
    colours = readColours(element);
    backdrop.paint(colours);
    paint();
  };
  const moved = () => {
    paintPeople(shown, colours);
    on.moved(boundsOf(map));
  };

  map.on("moveend", () => {
    lastView = { centre: map.getCenter(), zoom: map.getZoom() };
    moved();
  });
  repaint();
  moved();
  const timer = setInterval(() => paintOffers(shown, colours), 1000);
  const resized = new ResizeObserver(() => map.invalidateSize());
  resized.observe(element);
  const endScheme = onSchemeChange(repaint);

  return {
    show(now) {
      shown = now;
      // A request that was just made has a place only once it has been read.
      const place = now.current !== focused && now.tasks.get(now.current)?.location;
      if (place || !now.current) focused = now.current;
      if (place) map.setView([place.lat, place.lon], Math.max(map.getZoom(), CLOSE_ZOOM));
      paint();
    },
    // All requests, unless somebody has looked at a part of the map before.
    showAllAtFirst() {
      const places = [...shown.tasks.values()].filter((task) => task.location).map(({ location: { lat, lon } }) => [lat, lon]);
      if (!lastView && places.length) map.fitBounds(places, { padding: [40, 40], maxZoom: CLOSE_ZOOM, animate: false });
    },
    zoomBy: (steps) => map.setZoom(map.getZoom() + steps),
    close() {
      clearInterval(timer);
      resized.disconnect();
      endScheme();
      map.remove();
    },
  };
}

function tiles(map, address) {
  L.tileLayer(address, { maxZoom: 19 }).addTo(map);
  return { paint() {} };
}

function boundsOf(map) {
  const bounds = map.getBounds().pad(AROUND);
  const within = (value, most) => Math.min(most, Math.max(-most, value));
  return {
    south: within(bounds.getSouth(), 90),
    north: within(bounds.getNorth(), 90),
    west: within(bounds.getWest(), 180),
    east: within(bounds.getEast(), 180),
  };
}
