// Whether the window is wide enough for more than one pane.

import { useEffect, useState } from "../vendor/preact/preact.js";

export function useMedia(query) {
  const [media] = useState(() => matchMedia(query));
  const [matches, setMatches] = useState(media.matches);
  useEffect(() => {
    const update = () => setMatches(media.matches);
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [media]);
  return matches;
}
