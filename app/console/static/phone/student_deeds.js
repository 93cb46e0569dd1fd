// What a student does, as requests. The answer shows at once; a refusal says in plain words why, and what is true is read
// again.

import { messageOf, tell } from "../shared/ui.js";

const ANSWERS = { accept: "acceptTask", reject: "rejectTask" };
const STEPS = { start: "startTask", complete: "completeTask", withdraw: "withdrawTask" };
const CLOSED = ["COMPLETED", "CANCELLED", "TIMED_OUT", "PENDING"];

export function studentDeeds({ api, live }) {
  const attempt = async (deed) => {
    try {
      await deed();
    } catch (error) {
      tell(messageOf(error), "bad");
    }
    await live.read();
  };
  return {
    answer: (offer, deed) =>
      attempt(async () => {
        const task = await api[ANSWERS[deed]](offer.taskId);
        live.know({ offer: null, ...(deed === "accept" ? { openTask: task } : {}) });
      }),
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
