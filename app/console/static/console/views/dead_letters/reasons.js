// What the codes of failed messages mean. A code that has no words is shown as it is.

import { word } from "../../../shared/words.js";
import { wordOfCode } from "../parts.js";

export const STATES = ["OPEN", "REDRIVEN", "COVERED", "DISCARDED", "EXPIRED"];
export const CHANNELS = ["push", "sms", "email", "whatsapp", "webhook", "in_app", "audit"];

const SAME = {
  UNREGISTERED: "NO_DEVICE",
  INVALID_TOKEN: "NO_DEVICE",
  SUBSCRIPTION_GONE: "NO_DEVICE",
  INVALID_ADDRESS: "WRONG_ADDRESS",
  INVALID_ARGUMENT: "WRONG_ADDRESS",
  AUTH_REJECTED: "ACCESS",
  VAPID_REJECTED: "ACCESS",
  UNAUTHENTICATED: "ACCESS",
  PERMISSION_DENIED: "ACCESS",
  THIRD_PARTY_AUTH_ERROR: "ACCESS",
  SENDER_ID_MISMATCH: "ACCESS",
  ACCOUNT_BLOCKED: "ACCESS",
  UNREACHABLE: "NO_ANSWER",
  TIMEOUT: "NO_ANSWER",
  SMTP_TIMEOUT: "NO_ANSWER",
  CONNECTION_LOST: "NO_ANSWER",
  UNAVAILABLE: "NO_ANSWER",
  AUTH_UNAVAILABLE: "NO_ANSWER",
  INTERNAL: "NO_ANSWER",
  BREAKER_OPEN: "NO_ANSWER",
  QUOTA_EXCEEDED: "TOO_MUCH",
  RESOURCE_EXHAUSTED: "TOO_MUCH",
  UNKNOWN_TEMPLATE: "TEXT",
  INVALID_TEMPLATE: "TEXT",
  TEMPLATE_RENDER_FAILED: "TEXT",
  EMPTY_MESSAGE: "TEXT",
  INVALID_SUBJECT: "TEXT",
  NO_RECIPIENT: "NOBODY",
  PERSON_NOT_FOUND: "NOBODY",
  RECIPIENT_INACTIVE: "NOBODY",
  RECIPIENT_RETIRED: "NOBODY",
  RECIPIENT_GONE: "NOBODY",
};

export function reasonOf(code) {
  return wordOfCode("reason_of", SAME[code] ?? code, word("reason_of_other", { code }));
}
