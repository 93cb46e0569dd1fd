// What a coordinator can do with a task, by its status. The service decides; this is what is worth a button.

const DEEDS = {
  PENDING: ["assign", "next", "cancel"],
  ASSIGNED: ["complete", "release", "cancel"],
  STARTED: ["complete", "release", "cancel"],
};

export function possibleDeeds(task) {
  const deeds = DEEDS[task.status] ?? [];
  return task.currentOffer ? deeds : deeds.filter((deed) => deed !== "next");
}
