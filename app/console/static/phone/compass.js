// Distance and direction between two places, for a student on the way. A sphere is exact enough for a walk.

const EARTH_M = 6_371_008.8;
const DIRECTIONS = ["north", "northEast", "east", "southEast", "south", "southWest", "west", "northWest"];

export function wayBetween(from, to) {
  const [lat1, lat2] = [radians(from.lat), radians(to.lat)];
  const east = radians(to.lon - from.lon);
  const half = Math.sin((lat2 - lat1) / 2) ** 2 + Math.cos(lat1) * Math.cos(lat2) * Math.sin(east / 2) ** 2;
  const turn = Math.atan2(
    Math.sin(east) * Math.cos(lat2),
    Math.cos(lat1) * Math.sin(lat2) - Math.sin(lat1) * Math.cos(lat2) * Math.cos(east),
  );
  const bearing = (degrees(turn) + 360) % 360;
  return {
    distanceM: 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(half))),
    bearing,
    direction: DIRECTIONS[Math.round(bearing / 45) % 8],
  };
}

function radians(value) {
  return (value * Math.PI) / 180;
}

function degrees(value) {
  return (value * 180) / Math.PI;
}
