// What is happening to a request, in words.

import { clockTime, countdown, duration } from "../shared/format.js";
import { secondsSince, secondsUntil } from "../shared/clock.js";
import { word } from "../shared/words.js";
import { isNobodyFound } from "./live_state.js";

const KINDS = {
  nobody_found: "bad",
  search_ends: "warn",
  searching: "accent",
  late_start: "warn",
  long_help: "warn",
  coming: "good",
  helping: "good",
};

export function kindOf(urgency) {
  return KINDS[urgency] ?? "";
}

// The first thing to know, as short as a badge.
export function badgeText(task, urgency) {
  const { currentOffer } = task;
  if (urgency === "search_ends") return word("badge_search_ends", { left: countdown(secondsUntil(task.searchEndsAt)) });
  if (task.status === "PENDING" && currentOffer) {
    return word("badge_asking", { left: countdown(secondsUntil(currentOffer.deadline)) });
  }
  return word(`badge_${urgency}`);
}

export function happening(task) {
  if (task.status === "PENDING") {
    return task.currentOffer ? word("asking", { name: task.currentOffer.studentName ?? "" }) : word("waitingForNext");
  }
  if (isNobodyFound(task)) return word("outcomeMissing");
  if (task.status === "ASSIGNED") return word("onTheWay", { name: task.student?.name ?? "" });
  if (task.status === "STARTED") return word("withElder", { name: task.student?.name ?? "" });
  return word(`status_${task.status}`);
}

export function outcomeInWords({ outcome, note }) {
  return [word(`outcome_${outcome}`), note].filter(Boolean).join(" · ");
}

export function progress({ asked, remaining }) {
  return word("askedOf", { asked, all: asked + remaining });
}

export function waited(task) {
  return duration(secondsSince(task.createdAt));
}

export function pressedAt(task) {
  return word("pressedAt", { time: clockTime(task.createdAt), waited: waited(task) });
}
