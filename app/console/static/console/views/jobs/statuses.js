// The states of a job.

export const STATUSES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];

const KINDS = { RUNNING: "accent", SUCCEEDED: "good", FAILED: "bad" };

export function kindOfStatus(status) {
  return KINDS[status] ?? "";
}

export function isOpen({ status }) {
  return status === "QUEUED" || status === "RUNNING";
}
