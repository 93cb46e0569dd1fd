// What has happened to a request, in order, from its times and from the times of its offers. Pure.

const OFFER_ENDS = new Set(["REJECTED", "EXPIRED", "WITHDRAWN", "RELEASED", "SKIPPED"]);

export function timelineSteps(task, offers) {
  const name = task.student?.name;
  const steps = [
    { at: task.createdAt, what: "created" },
    ...offers.flatMap(offerSteps),
    { at: task.assignedAt, what: "assigned", name },
    { at: task.startedAt, what: "started", name },
    { at: task.endedAt, what: task.status.toLowerCase() },
    { at: task.outcome?.saidAt, what: "outcome", outcome: task.outcome },
  ];
  // What happened at one moment stays in the order above.
  return steps
    .filter(({ at }) => at)
    .map((step, index) => ({ ...step, index }))
    .sort((one, other) => Date.parse(one.at) - Date.parse(other.at) || one.index - other.index);
}

function offerSteps({ offeredAt, closedAt, state, studentName: name, reason, distanceM }) {
  const isByHand = reason === "ASSIGNED_BY_HAND" && state !== "WITHDRAWN";
  const asked = { at: isByHand ? null : offeredAt, what: "asked", name };
  // The reason of an offer that was released says how it began.
  const why = state === "RELEASED" ? {} : { reason, distanceM };
  const ended = { at: OFFER_ENDS.has(state) ? closedAt : null, what: `offer_${state.toLowerCase()}`, name, ...why };
  return [asked, ended];
}
