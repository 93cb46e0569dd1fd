// Reads one request with its offers, and reads it again after events that concern it.

import { useRead } from "../../shared/ui.js";
import { useEffect } from "../../vendor/preact/preact.js";
import { useConsole } from "../context.js";

export function useRequest(id) {
  const { api, live } = useConsole();
  const read = async () => {
    const [task, { items }] = await Promise.all([api.getTask(id), api.listOffers(id)]);
    return { task, offers: items };
  };
  const request = useRead(read, [id]);
  // Events of one moment come together, so this reads once for all of them.
  useEffect(() => live.listen((events) => events.some(({ taskId }) => taskId === id) && request.again()), [id]);
  return request;
}
