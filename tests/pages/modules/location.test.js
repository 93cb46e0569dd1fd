import { wayBetween } from "../../../app/console/static/phone/compass.js";
import { isWorthSending, openLocationSharing } from "../../../app/console/static/phone/location_sharing.js";
import { mapAddress } from "../../../app/console/static/phone/way_card.js";
import { createStore } from "../../../app/console/static/shared/store.js";
import { equal, test } from "./cases.js";

const HOME = { lat: 40.9871, lon: 29.0282 };

test("distance and direction of a walk", () => {
  const north = wayBetween(HOME, { lat: 40.9961, lon: 29.0282 });
  equal([Math.round(north.distanceM), north.direction], [1001, "north"]);
  const ways = [[0.001, 0.00132], [0, 0.001], [-0.001, 0], [0, -0.001]].map(([lat, lon]) => wayBetween(HOME, { lat: HOME.lat + lat, lon: HOME.lon + lon }).direction);
  equal(ways, ["northEast", "east", "south", "west"]);
  equal(wayBetween(HOME, HOME).distanceM, 0);
});

test("a place is sent at first, after a walk, and now and then", () => {
  const last = { place: HOME, at: 0 };
  const walked = { lat: HOME.lat + 0.001, lon: HOME.lon };
  equal(isWorthSending(null, HOME, 0), true);
  equal(isWorthSending(last, walked, 14_000), false, "too often");
  equal(isWorthSending(last, walked, 15_000), true);
  equal(isWorthSending(last, HOME, 60_000), false, "not moved");
  equal(isWorthSending(last, HOME, 300_000), true);
});

test("a place that did not arrive is sent again", async () => {
  let took = null;
  const sent = [];
  const geolocation = { watchPosition: (found) => ((took = found), 7), clearWatch: () => (took = null) };
  const send = async (place) => {
    sent.push(place);
    if (sent.length === 1) throw new Error("no connection");
  };
  const store = createStore({ state: "off", place: null });
  const sharing = openLocationSharing({ store, send, geolocation, storage: { getItem() {}, setItem() {}, removeItem() {} }, now: () => 0 });
  sharing.start();
  const position = { coords: { latitude: HOME.lat, longitude: HOME.lon } };
  await took(position);
  await took(position);
  await took(position);
  equal([sent, store.get()], [[HOME, HOME], { state: "on", place: HOME }]);
  sharing.stop();
  equal([took, store.get()], [null, { state: "off", place: null }]);
});

test("each kind of phone has its own address for maps", () => {
  equal(mapAddress(HOME, "Linux armv8l"), "geo:40.9871,29.0282?q=40.9871,29.0282");
  equal(mapAddress(HOME, "iPhone"), "maps://?daddr=40.9871,29.0282");
});
