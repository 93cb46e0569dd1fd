// What the server tells pages before anybody has signed in. Read once; a failure is not kept.

let settings = null;

export function pageSettings() {
  settings ??= read().catch((error) => {
    settings = null;
    throw error;
  });
  return settings;
}

async function read() {
  const answer = await fetch("/page-settings.json");
  if (!answer.ok) throw new Error(`page settings: ${answer.status}`);
  return answer.json();
}
