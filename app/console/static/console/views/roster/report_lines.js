// What the report of a run says, by kind.

export function kindsOf({ kinds = {}, people = {} }) {
  return Object.entries(kinds).map(([kind, report]) => ({
    kind,
    rows: report.rows ?? 0,
    added: report.added ?? 0,
    modified: report.modified ?? 0,
    removed: report.removed ?? 0,
    heldBack: heldBackIn(report),
    people: people[kind] ?? null,
  }));
}

// Only the newest run of a kind can be approved. `runs` are the newest first.
export function isApprovable(run, runs) {
  const newer = runs.slice(0, runs.indexOf(run)).flatMap(({ report }) => Object.keys(report.kinds ?? {}));
  return Object.entries(run.report.kinds ?? {}).some(([kind, report]) => heldBackIn(report) > 0 && !newer.includes(kind));
}

function heldBackIn(report) {
  const removals = report.removals_held ? report.removals_found : 0;
  return removals + (report.modifications_held ? report.modifications_found : 0);
}

// Rows that were left out: their numbers and flaws, never what stood in them.
export function badRowsOf({ lists = {} }) {
  return Object.entries(lists)
    .filter(([, list]) => list.bad > 0)
    .map(([name, list]) => ({ name, bad: list.bad, rows: list.bad_rows ?? [] }));
}
