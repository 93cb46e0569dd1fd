// The API with the token of a session. A refused token ends the session.

import { createClient } from "./client.js";

export function openApi(session) {
  return createClient({
    token: session.token,
    fetch: async (...request) => {
      const answer = await fetch(...request);
      if (answer.status === 401) session.end("expired");
      return answer;
    },
  });
}
