// A value once it has not changed for a moment, so that not every letter of a search asks the server.

import { useEffect, useState } from "../vendor/preact/preact.js";

const SETTLES_MS = 250;

export function useDelayed(value, settlesMs = SETTLES_MS) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settlesMs);
    return () => clearTimeout(timer);
  }, [value, settlesMs]);
  return settled;
}
