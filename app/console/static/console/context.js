// What every view of the console may use: `{ api, me, settings, router, live, session }`.

import { createContext, useContext } from "../vendor/preact/preact.js";

export const ConsoleContext = createContext(null);

export function useConsole() {
  return useContext(ConsoleContext);
}
