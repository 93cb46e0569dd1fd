// What changed, from the text of an entry. The text is kept as it was hashed, so it is read here.

export function changesOf(metadata) {
  const { changes = [] } = read(metadata);
  return changes.filter((change) => change && typeof change === "object").map(changeOf);
}

function read(metadata) {
  try {
    return JSON.parse(metadata) ?? {};
  } catch {
    return {};
  }
}

function changeOf({ table, row, before, after }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  const ids = Object.values(row ?? {}).join(", ");
  return {
    title: `${table} ${ids}`.trim(),
    fields: names.map((name) => ({ name, before: before?.[name], after: after?.[name] })),
  };
}

export function shownValue(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
