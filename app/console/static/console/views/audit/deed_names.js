// What routes do, as keys of words. The audit trail names a deed by its route.

const DEEDS = {
  "POST /tasks": "create_task",
  "PUT /tasks/{taskId}/cancel": "cancel_task",
  "PUT /tasks/{taskId}/assign": "assign_task",
  "PUT /tasks/{taskId}/next": "move_on",
  "PUT /tasks/{taskId}/release": "release_task",
  "PUT /tasks/{taskId}/complete": "complete_task",
  "PUT /tasks/{taskId}/outcome": "say_outcome",
  "POST /users": "create_user",
  "PATCH /users/{userId}": "patch_user",
  "PUT /users/{userId}/availability": "put_availability_of",
  "POST /api/v1/dead-letters/{deadLetterId}/redrive": "redrive_dead_letter",
  "POST /api/v1/dead-letters/redrive": "redrive_dead_letters",
  "POST /api/v1/dead-letters/{deadLetterId}/discard": "discard_dead_letter",
  "POST /api/v1/dead-letters/discard": "discard_dead_letters",
  "POST /api/v1/jobs": "request_job",
  "PUT /api/v1/jobs/{jobId}/cancel": "cancel_job",
  "POST /api/v1/roster/runs/{runId}/approve": "approve_run",
  "PUT /api/v1/roster/{kind}/lists/{listName}": "push_list",
  "PATCH /api/v1/templates/{templateId}": "change_template",
  "PATCH /api/v1/action-plans/{planId}": "change_action_plan",
};

// Undefined for a deed without words, for example a command of an operator.
export function deedOf(subject) {
  return DEEDS[subject];
}
