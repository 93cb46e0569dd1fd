// Points that are near each other on the screen, as one. A grid is enough: it is the same wherever the map is moved to,
// and thousands of points take a millisecond.

export const MOST_SINGLE_POINTS = 200;
const CELL_PX = 64;

// `points` have `x` and `y` in pixels of the whole world at one zoom, so that cells stay when the map moves. Returns
// `{ x, y, points }` for each cell with its middle, in the order of the points.
export function clusters(points, cellPx = CELL_PX) {
  const cells = new Map();
  for (const point of points) {
    const key = `${Math.floor(point.x / cellPx)}:${Math.floor(point.y / cellPx)}`;
    const cell = cells.get(key);
    if (cell) cell.points.push(point);
    else cells.set(key, { key, points: [point] });
  }
  return [...cells.values()].map(withMiddle);
}

function withMiddle(cell) {
  const { points } = cell;
  const middle = (axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  return { ...cell, x: middle("x"), y: middle("y") };
}

// All points as they are if they are few.
export function fewOrClustered(points, most = MOST_SINGLE_POINTS) {
  if (points.length > most) return clusters(points);
  return points.map((point) => ({ key: String(point.id), x: point.x, y: point.y, points: [point] }));
}
