// A person as the fields of a form, which are texts, and the changes that the service is sent.

export const ROLES = ["ELDER", "STUDENT", "COORDINATOR", "ADMIN"];

export function fieldsOf(person) {
  return {
    role: person?.role ?? "ELDER",
    name: person?.name ?? "",
    phone: person?.phone ?? "",
    locale: person?.locale ?? "tr",
    lat: text(person?.location?.lat),
    lon: text(person?.location?.lon),
    institutionId: text(person?.institutionId),
    firebaseUid: person?.firebaseUid ?? "",
  };
}

// Only what differs from `before` is sent, so that two admins who change different fields do not undo each other's work.
export function changesOf(fields, before = null) {
  const now = valuesOf(fields);
  if (!before) return only(now, (_, value) => value !== null);
  const then = valuesOf(before);
  return only(now, (name, value) => name !== "role" && JSON.stringify(value) !== JSON.stringify(then[name]));
}

function only(values, isMeant) {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => isMeant(name, value)));
}

function valuesOf({ role, name, phone, locale, lat, lon, institutionId, firebaseUid }) {
  return {
    role,
    name: name.trim(),
    phone: phone.replaceAll(/[\s().-]/g, "") || null,
    locale,
    location: lat.trim() || lon.trim() ? { lat: number(lat), lon: number(lon) } : null,
    institutionId: institutionId.trim() ? number(institutionId) : null,
    firebaseUid: firebaseUid.trim() || null,
  };
}

// Both "40.98" and "40,98" are written.
function number(written) {
  const value = written.trim() ? Number(written.trim().replace(",", ".")) : NaN;
  return Number.isNaN(value) ? written : value;
}

function text(value) {
  return value === null || value === undefined ? "" : String(value);
}

// What is wrong with each field, from the problem of the service.
export function wrongFields(error, wordOf) {
  const found = {};
  for (const { field, code, message } of error.fields ?? []) {
    const said = wordOf(code) ?? message;
    const [first, second] = field.split(".");
    found[first === "location" ? (second ?? "lat") : first] ??= said;
  }
  return found;
}
