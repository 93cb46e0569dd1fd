// What has changed between two answers of `GET /me` of one person. The newer one does not say how a task or an offer
// that it lacks has ended, or who no longer comes.

const HELD = ["ASSIGNED", "STARTED"];

// `gone` is a task that was open and is not any more, `withdrawn` the student who no longer comes to the open task,
// `lostOffer` an offer that has ended without an answer from this phone.
export function changesOf(before, me, nowMs) {
  const known = before.me?.id === me.id ? before : { me: null, withdrawn: null };
  const task = known.me?.openTask ?? null;
  return {
    gone: task && task.id !== me.openTask?.id ? task : null,
    withdrawn: withdrawnFrom(known.withdrawn, task, me.openTask),
    lostOffer: lostOffer(known, me, nowMs),
  };
}

function withdrawnFrom(known, before, now) {
  if (now?.status !== "PENDING") return null;
  if (before?.id === now.id && HELD.includes(before.status)) return { taskId: now.id, name: before.student?.name ?? "" };
  return known?.taskId === now.id ? known : null;
}

// The event of an answer may come before the answer to the deed does.
function lostOffer(known, me, nowMs) {
  const offer = known.me?.offer;
  if (!offer || offer.taskId === known.answering || offer.taskId === me.offer?.taskId || offer.taskId === me.openTask?.id) return null;
  return { taskId: offer.taskId, reason: nowMs >= Date.parse(offer.deadline) ? "offer_expired" : "offer_withdrawn" };
}
