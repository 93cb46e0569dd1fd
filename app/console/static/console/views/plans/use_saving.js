// Saves a form of a plan. What is wrong with a field stands at the field. If somebody else was faster, that is said and
// the plan is read again, so that nobody overwrites what they have not seen.

import { messageOf, tell } from "../../../shared/ui.js";
import { word } from "../../../shared/words.js";
import { useState } from "../../../vendor/preact/preact.js";
import { wrongOf } from "../wrong_fields.js";

export function useSaving({ again, onClose }) {
  const [wrong, setWrong] = useState({});
  const save = async (run) => {
    try {
      await run();
    } catch (error) {
      if (error.fields?.length) return setWrong(wrongOf(error));
      if (!isOvertaken(error)) throw error;
      tellOvertaken(error);
    }
    onClose();
    await again();
  };
  return { save, wrong };
}

export function isOvertaken({ status }) {
  return status === 409 || status === 404;
}

export function tellOvertaken(error) {
  tell(word("refused", { why: messageOf(error) }), "warn");
}

// For deeds without a form.
export async function orReadAgain(again, run) {
  try {
    await run();
  } catch (error) {
    if (!isOvertaken(error)) throw error;
    tellOvertaken(error);
  }
  await again();
}
