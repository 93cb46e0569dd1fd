// What the address says of the trail, as the service is asked for it.

export const KINDS = [
  "USER",
  "TASK",
  "PLAN",
  "STEP",
  "ROUTE",
  "TEMPLATE",
  "PROFILE",
  "CHANNEL",
  "DEAD_LETTER",
  "JOB",
  "ROSTER_RUN",
  "CONSUMER",
];

export const FILTERS = ["author", "deed", "subjectKind", "subjectId", "since", "until"];

// Without what is empty. A kind without an id, or an id without a kind, is not asked for yet.
export function queryOf(filters) {
  const { author, deed, since, until, subjectKind, subjectId } = trimmed(filters);
  const about = subjectKind && subjectId ? { subjectKind, subjectId } : {};
  return { author, deed, ...about, since: instantOf(since), until: instantOf(until) };
}

// The field that is missing, as a key of words.
export function missingIn(filters) {
  const { subjectKind, subjectId } = trimmed(filters);
  if (subjectKind && !subjectId) return { subjectId: "auditIdNeeded" };
  return subjectId && !subjectKind ? { subjectKind: "auditKindNeeded" } : {};
}

function trimmed(filters) {
  return Object.fromEntries(FILTERS.map((name) => [name, filters[name]?.trim() || undefined]));
}

// Times in the address are those of the reader's clock. What is no time is asked for as it is, so that the service names it.
function instantOf(written) {
  const time = written ? new Date(written) : null;
  return time && !Number.isNaN(time.getTime()) ? time.toISOString() : written;
}

const PLACES = [
  [/^\/users\/([1-9]\d*)(\/|$)/, "USER"],
  [/^user:([1-9]\d*)$/, "USER"],
  [/^\/tasks\/([0-9a-f-]{36})(\/|$)/, "TASK"],
  [/^task:([0-9a-f-]{36})$/, "TASK"],
  [/\/action-plans\/([1-9]\d*)(\/|$)/, "PLAN"],
  [/^plan:([1-9]\d*)$/, "PLAN"],
  [/\/action-routes\/([1-9]\d*)$/, "ROUTE"],
  [/\/templates\/([1-9]\d*)$/, "TEMPLATE"],
  [/\/recipient-profiles\/([1-9]\d*)$/, "PROFILE"],
  [/\/recipient-channels\/([1-9]\d*)(\/|$)/, "CHANNEL"],
  [/\/dead-letters\/([0-9a-f-]{36})(\/|$)/, "DEAD_LETTER"],
  [/\/jobs\/([0-9a-f-]{36})(\/|$)/, "JOB"],
  [/\/roster\/runs\/([1-9]\d*)(\/|$)/, "ROSTER_RUN"],
  [/\/roster\/consumers\/([1-9]\d*)$/, "CONSUMER"],
];

// What an entry is about, from its address; null where the address names no one thing.
export function subjectOf(recipient) {
  for (const [form, subjectKind] of PLACES) {
    const found = form.exec(recipient);
    if (found) return { subjectKind, subjectId: found[1] };
  }
  return null;
}
