// Words as their readers would see them, asked for again once nobody has typed for a moment.

import { useRead } from "../../../shared/ui.js";
import { useState } from "../../../vendor/preact/preact.js";
import { useDelayed } from "../../delayed.js";
import { wrongOf } from "../wrong_fields.js";
import { sampleOf, valueOf, variablesOf } from "./template_texts.js";

// `fill` asks the service: from `{ subject, body, variables }` to the words that are read.
export function usePreview({ subject, body }, fill) {
  const names = variablesOf(subject, body);
  const [written, setWritten] = useState({});
  const textOf = (name) => written[name] ?? sampleOf(name);
  const variables = Object.fromEntries(names.map((name) => [name, valueOf(textOf(name))]));
  const asked = useDelayed(JSON.stringify({ subject, body, variables }));
  const filled = useRead(() => fill(JSON.parse(asked)), [asked]);
  const set = (name) => (text) => setWritten((now) => ({ ...now, [name]: text }));
  return { filled, wrong: wrongOf(filled.error), names, textOf, set };
}
