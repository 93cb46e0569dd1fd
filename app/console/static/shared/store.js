// State that several components show. A change makes every component that uses the store render again.

import { useEffect, useState } from "../vendor/preact/preact.js";

export function createStore(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    // Takes the changed fields, or a function from the state to them.
    set(change) {
      state = { ...state, ...(typeof change === "function" ? change(state) : change) };
      listeners.forEach((listener) => listener());
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore(store) {
  const [, renderAgain] = useState(0);
  useEffect(() => store.listen(() => renderAgain((count) => count + 1)), [store]);
  return store.get();
}

// Renders again every `everyMs`, for countdowns. The component reads the time itself.
export function useTick(everyMs = 1000) {
  const [, renderAgain] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => renderAgain((count) => count + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
