// What stands on the map: elders with an open request, students on duty, live offers. Pure.

import { urgencyOf } from "../urgency.js";

const ELDER_COLOURS = {
  nobody_found: "bad",
  search_ends: "warn",
  late_start: "warn",
  long_help: "warn",
};

export function elderPoints(tasks, nowMs) {
  return [...tasks]
    .filter((task) => task.location)
    .map((task) => {
      const urgency = urgencyOf(task, nowMs);
      return { id: task.id, kind: "elder", ...task.location, name: task.elder.name, urgency, colour: ELDER_COLOURS[urgency] ?? "accent" };
    });
}

// Those who are off duty stand on the map only while they help.
export function studentPoints(students) {
  return [...students]
    .filter(({ lat, onDuty, busy }) => lat !== null && lat !== undefined && (onDuty || busy))
    .map(({ id, lat, lon, name, busy, offeredTaskId }) => ({ id, kind: "student", lat, lon, name, state: stateOf(busy, offeredTaskId) }));
}

// Busy are also students who are being asked; by which task is known only where it may be seen.
function stateOf(busy, offeredTaskId) {
  if (offeredTaskId) return "asked";
  return busy ? "busy" : "free";
}

// Offers whose two ends are known.
export function offerLines(tasks, students) {
  const lines = [];
  for (const task of tasks) {
    const student = task.status === "PENDING" && task.currentOffer && students.get(task.currentOffer.studentId);
    if (student && task.location && student.lat !== null) {
      lines.push({ id: task.id, elder: task.location, student, deadline: task.currentOffer.deadline });
    }
  }
  return lines;
}
