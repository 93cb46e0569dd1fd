// The figures of a month: of each its table, and what draws it. Days without requests stay in the drawings, as gaps.

import { daysOf } from "./months.js";

const SECONDS_PER_MINUTE = 60;

const toAccept = {
  name: "toAccept",
  columns: ["day", "count", "p50S", "p90S"],
  rows: (found) => found.toAccept,
  series: [
    { key: "p50S", look: "solid" },
    { key: "p90S", look: "dashed" },
  ],
  plot: (found) => {
    const minutes = (key) => ofDays(found, found.toAccept, key, SECONDS_PER_MINUTE);
    return { kind: "lines", labels: days(found), values: [minutes("p50S"), minutes("p90S")] };
  },
};

const silence = {
  name: "silence",
  columns: ["day", "asked", "accepted", "rejected", "expired"],
  rows: (found) => found.silence,
  series: [
    { key: "accepted", look: "filled" },
    { key: "rejected", look: "dotted" },
    { key: "expired", look: "hatched" },
  ],
  plot: (found) => {
    const values = ["accepted", "rejected", "expired"].map((key) => ofDays(found, found.silence, key));
    return { kind: "stack", labels: days(found), values };
  },
};

const load = {
  name: "load",
  columns: ["completed", "students"],
  rows: (found) => found.load,
  series: [],
  plot: ({ load }) => {
    const most = Math.max(0, ...load.map(({ completed }) => completed));
    const students = new Map(load.map((one) => [one.completed, one.students]));
    const labels = Array.from({ length: most + 1 }, (_, completed) => String(completed));
    return { kind: "bars", labels, values: [labels.map((_, completed) => students.get(completed) ?? 0)] };
  },
};

const unmet = {
  name: "unmet",
  columns: ["lat", "lon", "count"],
  rows: (found) => found.unmet,
  series: [],
  plot: ({ unmet }) => ({ kind: "map", cells: unmet }),
};

export const FIGURES = [toAccept, unmet, load, silence];

function days({ month }) {
  return daysOf(month).map((day) => String(Number(day.slice(-2))));
}

function ofDays({ month }, rows, key, divisor = 1) {
  const byDay = new Map(rows.map((row) => [row.day, row[key]]));
  return daysOf(month).map((day) => {
    const value = byDay.get(day) ?? null;
    return value === null ? null : value / divisor;
  });
}
