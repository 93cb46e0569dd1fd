// Months as the API names them, such as "2026-11".

import { serverNow } from "../../../shared/clock.js";

export function isMonth(text) {
  return /^20\d\d-(0[1-9]|1[0-2])$/.test(text ?? "");
}

// By the clock of the server, in the time zone of the browser: coordinators are where their elders are.
export function thisMonth(nowMs = serverNow()) {
  const now = new Date(nowMs);
  return named(now.getFullYear(), now.getMonth());
}

export function shifted(month, by) {
  const [year, number] = month.split("-").map(Number);
  const moved = new Date(year, number - 1 + by);
  return named(moved.getFullYear(), moved.getMonth());
}

// The month with those around it that somebody may choose, newest first.
export function monthsAround(month, now = thisMonth(), count = 24) {
  const all = Array.from({ length: count }, (_, back) => shifted(now, -back));
  return all.includes(month) ? all : [...all, month].sort().reverse();
}

export function daysOf(month) {
  const [year, number] = month.split("-").map(Number);
  const count = new Date(year, number, 0).getDate();
  return Array.from({ length: count }, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`);
}

function named(year, index) {
  return `${year}-${String(index + 1).padStart(2, "0")}`;
}
