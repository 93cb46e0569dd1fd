// The token of whoever has signed in on this page. It lives in memory and in sessionStorage, never in an address.
// Each kind of page has its own, so that an elder's and a student's phone can stand side by side in one window.

export function openSession(kind, storage = globalThis.sessionStorage) {
  const key = `yaninda.token.${kind}`;
  const listeners = new Set();
  let token = read(storage, key);
  const tell = (reason) => listeners.forEach((listener) => listener(reason));
  return {
    kind,
    token: () => token,
    begin(newToken) {
      token = newToken;
      write(storage, key, newToken);
      tell("begun");
    },
    // The reason is "signed_out", or "expired" if the server has refused the token.
    end(reason = "signed_out") {
      if (token === null) return;
      token = null;
      write(storage, key, null);
      tell(reason);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

// Browsers that refuse storage still keep the token in memory.
function read(storage, key) {
  try {
    return storage.getItem(key);
  } catch {
    return null;
  }
}

function write(storage, key, value) {
  try {
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, value);
  } catch {
    return;
  }
}
