// A key for requests that may be sent twice. `randomUUID` is missing where the page is not encrypted.

export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
