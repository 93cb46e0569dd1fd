// Reports the student's place while the page is open and the student wants it. A phone reports its place every second;
// the server needs to hear of it only after a walk.

import { wayBetween } from "./compass.js";

const FAR_ENOUGH_M = 100;
const LONG_ENOUGH_MS = 5 * 60 * 1000;
const AT_MOST_EVERY_MS = 15_000;
const KEY = "yaninda.share_location";

// True if a place is worth a request. `last` is `{place, at}`, or null before the first one.
export function isWorthSending(last, place, nowMs) {
  if (!last) return true;
  const age = nowMs - last.at;
  if (age < AT_MOST_EVERY_MS) return false;
  return age >= LONG_ENOUGH_MS || wayBetween(last.place, place).distanceM >= FAR_ENOUGH_M;
}

// The store has `state`: "off", "asking", "on", "refused", "unavailable" or "unsupported"; and `place`, the last one.
export function openLocationSharing({ send, store, geolocation = navigator.geolocation, storage = globalThis.localStorage, now = Date.now }) {
  let watch = null;
  let last = null;

  const took = async ({ coords }) => {
    const place = { lat: coords.latitude, lon: coords.longitude };
    store.set({ state: "on", place });
    if (!isWorthSending(last, place, now())) return;
    const before = last;
    last = { place, at: now() };
    try {
      await send(place);
    } catch {
      last = before; // The next place is sent instead.
    }
  };
  const failed = (error) => store.set({ state: error.code === error.PERMISSION_DENIED ? "refused" : "unavailable" });

  const sharing = {
    start() {
      keep(storage, "yes");
      if (!geolocation) return store.set({ state: "unsupported" });
      sharing.pause();
      store.set({ state: "asking" });
      watch = geolocation.watchPosition(took, failed, { enableHighAccuracy: true, maximumAge: 10_000 });
      return undefined;
    },
    stop() {
      keep(storage, null);
      sharing.pause();
      store.set({ state: "off", place: null });
    },
    // Without forgetting what the student wants.
    pause() {
      if (watch !== null) geolocation.clearWatch(watch);
      watch = null;
      last = null;
    },
    isWanted() {
      try {
        return storage.getItem(KEY) === "yes";
      } catch {
        return false;
      }
    },
  };
  return sharing;
}

function keep(storage, value) {
  try {
    if (value) storage.setItem(KEY, value);
    else storage.removeItem(KEY);
  } catch {
    // Then the student is asked again next time.
  }
}
