// What the student's phone shows, as a function of what is known.

export function studentView({ me, nowMs }) {
  if (me.openTask) return { kind: me.openTask.status === "STARTED" ? "here" : "coming", task: me.openTask };
  // An offer that is over is gone for its student, whatever the server says next.
  if (me.offer && Date.parse(me.offer.deadline) > nowMs) return { kind: "offer", offer: me.offer };
  return { kind: me.onDuty ? "waiting" : "offDuty" };
}

// How a task ended that this student had: what is said about it, or null if they have ended it themselves.
export function endOfTask(ended) {
  if (!ended || ended.status === "COMPLETED") return null;
  return ended.status === "CANCELLED" ? "taskCancelled" : "taskTakenBack";
}

// The part of the time that is left, from 1 to 0. `seenAtMs` is when this phone first saw the offer, because the answer
// does not tell how long an offer is.
export function partLeft(deadline, seenAtMs, nowMs) {
  const end = Date.parse(deadline);
  return end > seenAtMs ? Math.min(1, Math.max(0, (end - nowMs) / (end - seenAtMs))) : 0;
}
