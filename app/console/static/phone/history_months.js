// Tasks by the month of the reader's time zone, newest first. `helped` counts those that this student has completed.

export function byMonth(tasks, studentId) {
  const months = new Map();
  for (const task of tasks) {
    const created = new Date(task.createdAt);
    const key = `${created.getFullYear()}-${String(created.getMonth() + 1).padStart(2, "0")}`;
    if (!months.has(key)) months.set(key, { key, first: new Date(created.getFullYear(), created.getMonth(), 1), tasks: [] });
    months.get(key).tasks.push(task);
  }
  return [...months.values()].map((month) => ({ ...month, helped: month.tasks.filter((task) => isHelped(task, studentId)).length }));
}

function isHelped(task, studentId) {
  return task.status === "COMPLETED" && task.student?.id === studentId;
}
