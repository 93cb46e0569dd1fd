// Files that the page makes, or that need a token and so cannot be links.

const FORMULA = /^[=+\-@\t\r]/;

// A table as a spreadsheet reads it. `columns` are `{ key, label }`. Text that a spreadsheet would calculate is quoted as
// text.
export function csvOf(columns, rows) {
  const lines = [columns.map(({ label }) => label), ...rows.map((row) => columns.map(({ key }) => row[key]))];
  // The mark tells spreadsheets that the file is UTF-8.
  return `\ufeff${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
}

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveFile(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has to have opened it before it is forgotten.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
