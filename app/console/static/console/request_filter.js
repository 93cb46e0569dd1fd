// Which of the open requests are shown. The filters stand in the address.

export const STATES = ["searching", "nobody_found", "assigned"];

const STATUSES = {
  searching: ["PENDING"],
  nobody_found: ["TIMED_OUT"],
  assigned: ["ASSIGNED", "STARTED"],
};

export function matchingTasks(tasks, { q = "", state = "" }) {
  const wanted = fold(q).split(/\s+/).filter(Boolean);
  const statuses = STATUSES[state];
  if (!wanted.length && !statuses) return [...tasks];
  return [...tasks].filter((task) => (!statuses || statuses.includes(task.status)) && hasAll(task, wanted));
}

function hasAll(task, wanted) {
  if (!wanted.length) return true;
  const text = fold(
    [task.elder.name, task.elder.phone, task.note, task.student?.name, task.currentOffer?.studentName, task.id].join(" "),
  );
  return wanted.every((one) => text.includes(one));
}

// "Işıl" and "isil" are the same for a search: Turkish letters are folded, and marks go.
export function fold(text) {
  return text.toLocaleLowerCase("tr").replaceAll("ı", "i").normalize("NFD").replace(/\p{M}/gu, "");
}
