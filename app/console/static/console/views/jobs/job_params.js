// The parameters of a script as the fields of a form. Its declaration is JSON schema; what a form cannot show well, such
// as an object, is written as JSON.

export function fieldsOfSchema(schema) {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).map(([name, property]) => fieldOf(name, property, required.includes(name)));
}

function fieldOf(name, property, isRequired) {
  const forms = (property.anyOf ?? [property]).filter(({ type }) => type !== "null");
  const [form] = forms;
  return {
    name,
    kind: kindOf(forms),
    isRequired,
    options: form.enum ?? [],
    item: form.items?.type ?? "string",
    initial: property.default,
    hint: property.description ?? null,
  };
}

const KINDS = { string: "text", array: "list", integer: "integer", number: "number", boolean: "boolean" };

function kindOf([form, ...others]) {
  if (form.enum) return "choice";
  return others.length ? "text" : (KINDS[form.type] ?? "json");
}

export function textsOf(fields) {
  return Object.fromEntries(fields.map((field) => [field.name, textOf(field)]));
}

function textOf({ kind, initial, options }) {
  if (kind === "boolean") return initial === true;
  if (kind === "choice") return String(initial ?? options[0]);
  if (initial === null || initial === undefined) return "";
  if (kind === "list") return initial.join(", ");
  return kind === "json" ? JSON.stringify(initial) : String(initial);
}

// `{ params, mistakes }`, the mistakes as keys of words. An empty field is left out, so that the script uses its own value.
export function paramsOf(fields, texts) {
  const params = {};
  const mistakes = {};
  for (const field of fields) {
    const value = read(field, texts[field.name]);
    if (value.mistake) mistakes[field.name] = value.mistake;
    else if (value.given !== undefined) params[field.name] = value.given;
  }
  return { params, mistakes };
}

function read({ kind, item, isRequired }, text) {
  if (kind === "boolean") return { given: text };
  const written = text.trim();
  if (!written) return isRequired ? { mistake: "required" } : {};
  if (kind === "list") return readAll(written, item);
  return readOne(kind, written);
}

function readAll(written, item) {
  const parts = written.split(",").map((part) => part.trim()).filter(Boolean);
  const values = parts.map((part) => readOne(item, part));
  return values.find(({ mistake }) => mistake) ?? { given: values.map(({ given }) => given) };
}

function readOne(kind, written) {
  if (kind === "json") {
    try {
      return { given: JSON.parse(written) };
    } catch {
      return { mistake: "mustBeJson" };
    }
  }
  if (kind !== "integer" && kind !== "number") return { given: written };
  const value = Number(written.replace(",", "."));
  if (kind === "integer" && !Number.isInteger(value)) return { mistake: "mustBeWhole" };
  if (Number.isNaN(value)) return { mistake: "mustBeNumber" };
  return { given: value };
}
