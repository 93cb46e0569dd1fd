// What a student does, as requests. The answer shows at once; a refusal says in plain words why, and what is true is read
// again.

import { messageOf, tell } from "../shared/ui.js";

const ANSWERS = { accept: "acceptTask", reject: "rejectTask" };
const STEPS = { start: "startTask", complete: "completeTask", withdraw: "withdrawTask" };
const CLOSED = ["COMPLETED", "CANCELLED", "TIMED_OUT", "PENDING"];

const PAUSES_MS = [1000, 2000];

// Repeats what may be repeated and may succeed: every deed of a student is harmless the second time.
export async function patiently(deed, wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))) {
  for (const pause of PAUSES_MS) {
    try {
      return await deed();
    } catch (error) {
      const passes = error.status === undefined || error.status >= 500 || error.code === "try_again";
      if (!passes) throw error;
      await wait(pause);
    }
  }
  return deed();
}

export function studentDeeds({ api, live }) {
  const attempt = async (deed) => {
    try {
      await patiently(deed);
    } catch (error) {
      tell(messageOf(error), "bad");
    }
    await live.read();
  };
  return {
    answer(offer, deed) {
      live.answering(offer.taskId);
      return attempt(async () => {
        const task = await api[ANSWERS[deed]](offer.taskId);
        live.know({ offer: null, ...(deed === "accept" ? { openTask: task } : {}) });
      });
    },
    step: (task, deed) =>
      attempt(async () => {
        const now = await api[STEPS[deed]](task.id);
        live.know({ openTask: CLOSED.includes(now.status) ? null : now });
      }),
    duty: (onDuty) =>
      attempt(async () => {
        await api.putAvailability({ onDuty });
        live.know({ onDuty, ...(onDuty ? {} : { offer: null }) });
      }),
  };
}
