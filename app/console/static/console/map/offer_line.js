// A live offer on the map: a line from the elder to the student, which becomes shorter with the time to answer.

// How much of its time an offer has left, from 1 to 0. The time it had is known from the event that began it; until
// then the longest that any offer had left stands for it.
export function shareLeft(deadline, nowMs, ttlMs) {
  return Math.min(1, Math.max(0, (Date.parse(deadline) - nowMs) / ttlMs));
}

export function longestTtlMs(tasks, nowMs, atLeastMs = 0) {
  let longest = atLeastMs;
  for (const { currentOffer } of tasks) {
    if (!currentOffer) continue;
    const began = currentOffer.since ? Date.parse(currentOffer.since) : nowMs;
    longest = Math.max(longest, Date.parse(currentOffer.deadline) - began);
  }
  return longest || 1;
}

// The end of the line on its way back from the student to the elder.
export function endOfLine(elder, student, share) {
  return { lat: elder.lat + (student.lat - elder.lat) * share, lon: elder.lon + (student.lon - elder.lon) * share };
}
