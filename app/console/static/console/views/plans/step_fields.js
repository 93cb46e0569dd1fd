// A step of a plan as the fields of a form, and what the service is sent.

export const AUDIENCES = ["PERSON", "ROUTES"];
export const ON_FAILURE = ["STOP", "CONTINUE"];
export const CHANNELS = ["push", "sms", "email", "whatsapp", "webhook", "in_app", "audit"];
export const MOST_FALLBACKS = 8;
const HIGHEST_ORDER = 100;

export function fieldsOfStep(step) {
  return {
    channelType: step?.channelType ?? "push",
    audience: step?.audience ?? "PERSON",
    templateKey: step?.templateKey ?? "",
    onFailure: step?.onFailure ?? "STOP",
    fallback: step?.fallback ?? [],
    withinS: step?.withinS == null ? "" : String(step.withinS),
    mayArriveTwice: step?.mayArriveTwice ?? false,
  };
}

export function valuesOfStep({ templateKey, withinS, ...fields }) {
  const seconds = withinS.trim() ? Number(withinS.trim()) : null;
  return { ...fields, templateKey: templateKey || null, withinS: Number.isNaN(seconds) ? withinS : seconds };
}

// Only what differs is sent.
export function changedValues(now, before) {
  return Object.fromEntries(
    Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])),
  );
}

// `steps` in their order. A new step runs last; null if there is no number left for it.
export function orderOfNew(steps) {
  const highest = Math.max(0, ...steps.map(({ stepOrder }) => stepOrder));
  return highest < HIGHEST_ORDER ? highest + 1 : null;
}

// The changes of numbers that move one step after the one below it, as `{ id, stepOrder }`, one call after the other.
// Two steps never have one number, and only the last call changes which step runs first: if one before it fails, the
// plan runs as it did. Null if all numbers are in use.
export function movesDown(steps, id) {
  const at = steps.findIndex((step) => step.id === id);
  const below = steps[at + 1].stepOrder;
  const later = steps.slice(at + 2);
  const free = firstGap(below, later);
  if (free > HIGHEST_ORDER) return null;
  const inTheWay = later.filter(({ stepOrder }) => stepOrder < free);
  const room = inTheWay.map((step) => ({ id: step.id, stepOrder: step.stepOrder + 1 })).reverse();
  return [...room, { id, stepOrder: below + 1 }];
}

function firstGap(after, later) {
  let free = after + 1;
  for (const { stepOrder } of later) {
    if (stepOrder > free) break;
    free = stepOrder + 1;
  }
  return free;
}
