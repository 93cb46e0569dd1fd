// Which request needs a coordinator first. Pure, so that the order can be tested without a page.

import { isNobodyFound } from "./live_state.js";

export const SEARCH_NEARLY_OVER_S = 15 * 60;
export const START_LATE_S = 30 * 60;
export const HELP_LONG_S = 3 * 3600;

// In the order of urgency.
export const URGENCIES = ["nobody_found", "search_ends", "searching", "late_start", "long_help", "coming", "helping"];

export function urgencyOf(task, nowMs) {
  if (isNobodyFound(task)) return "nobody_found";
  if (task.status === "PENDING") {
    return task.searchEndsAt && secondsLeft(task.searchEndsAt, nowMs) < SEARCH_NEARLY_OVER_S ? "search_ends" : "searching";
  }
  if (task.status === "ASSIGNED") return isOlder(task.assignedAt, START_LATE_S, nowMs) ? "late_start" : "coming";
  return isOlder(task.startedAt, HELP_LONG_S, nowMs) ? "long_help" : "helping";
}

// Within one urgency, whoever has waited longest comes first.
export function mostUrgentFirst(tasks, nowMs) {
  return [...tasks]
    .map((task) => ({ task, urgency: urgencyOf(task, nowMs), rank: 0 }))
    .map((row) => ({ ...row, rank: URGENCIES.indexOf(row.urgency) }))
    .sort((one, other) => one.rank - other.rank || compare(sinceOf(one), sinceOf(other)) || compare(one.task.id, other.task.id));
}

// Searches that end soon are ordered by their end, the others by how long somebody has waited.
function sinceOf({ task, urgency }) {
  return urgency === "search_ends" ? task.searchEndsAt : task.createdAt;
}

function secondsLeft(instant, nowMs) {
  return (Date.parse(instant) - nowMs) / 1000;
}

function isOlder(instant, seconds, nowMs) {
  return Boolean(instant) && -secondsLeft(instant, nowMs) > seconds;
}

function compare(one, other) {
  return one < other ? -1 : one > other ? 1 : 0;
}
