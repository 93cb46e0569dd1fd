// What uPlot draws for lines, bars and stacked bars.

const LINE = 2;
const DASHES = { solid: undefined, dashed: [7, 5] };
const NAMES = ["accent", "warn", "bad", "soft", "line", "surface"];
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
const AXIS = { font: "12px system-ui, sans-serif", ticks: { show: false }, incrs: WHOLE_STEPS };
const ABOVE = 1.08;
const PATTERN_SIZE = 8;
const BAR_SHARE = 0.7;
const WIDEST_BAR = 48;

export function readPlotColours(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// The upper edges of bars that stand on each other, the highest first, because each is drawn over the one before it.
// `values` are from the bottom to the top. A day without values stays without.
export function stacked(values) {
  const sumOf = (count, index) => values.slice(0, count).reduce((sum, one) => (one[index] === null ? sum : sum + one[index]), null);
  return values.map((one, at) => one.map((_, index) => sumOf(at + 1, index))).reverse();
}

export function plotOptions(UPlot, { kind, labels, series, colours, onIndex }) {
  const looks = { lines: series, stack: [...series].reverse(), bars: [{ look: "filled" }] };
  const draw = (look) => (kind === "lines" ? line(look, colours) : bars(UPlot, look, colours));
  return {
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: kind === "lines" } },
    scales: { x: { time: false, range: [-0.5, labels.length - 0.5] }, y: { range: upTo } },
    axes: [axisBelow(labels, colours), axisBeside(colours)],
    series: [{}, ...looks[kind].map(({ look }) => draw(look))],
    hooks: { setCursor: [({ cursor: { idx } }) => onIndex(idx ?? null)] },
  };
}

function upTo(_plot, _least, most) {
  return [0, Math.max(most * ABOVE, 1)];
}

function axisBelow(labels, { soft }) {
  const values = (_, places) => places.map((at) => labels[at] ?? "");
  return { ...AXIS, stroke: soft, size: 28, space: 28, grid: { show: false }, values };
}

function axisBeside({ soft, line: colour }) {
  return { ...AXIS, stroke: soft, size: 40, grid: { stroke: colour, width: 1 } };
}

function line(look, { accent, warn, surface }) {
  const stroke = look === "dashed" ? warn : accent;
  const points = { show: true, size: 6, fill: look === "dashed" ? surface : stroke };
  return { stroke, width: LINE, dash: DASHES[look], points, spanGaps: false };
}

function bars(UPlot, look, colours) {
  const fill = { filled: colours.accent, dotted: colours.warn, hatched: colours.bad }[look];
  return {
    stroke: fill,
    width: 1,
    fill: look === "filled" ? fill : (plot) => pattern(plot, look, fill, colours.surface),
    points: { show: false },
    paths: UPlot.paths.bars({ size: [BAR_SHARE, WIDEST_BAR] }),
  };
}

function pattern(plot, look, colour, ground) {
  const tile = Object.assign(document.createElement("canvas"), { width: PATTERN_SIZE, height: PATTERN_SIZE });
  const paint = tile.getContext("2d");
  paint.fillStyle = ground;
  paint.fillRect(0, 0, PATTERN_SIZE, PATTERN_SIZE);
  paint.fillStyle = paint.strokeStyle = colour;
  paint.lineWidth = 2;
  if (look === "dotted") paint.fillRect(2, 2, 3, 3);
  else hatch(paint);
  return plot.ctx.createPattern(tile, "repeat");
}

// Strokes beyond the corners join with those of the tiles beside it.
function hatch(paint) {
  paint.beginPath();
  for (const from of [-PATTERN_SIZE, 0, PATTERN_SIZE]) {
    paint.moveTo(from - 1, PATTERN_SIZE + 1);
    paint.lineTo(from + PATTERN_SIZE + 1, -1);
  }
  paint.stroke();
}
