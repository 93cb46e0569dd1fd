// What routes do, as keys of words. The audit trail names a deed by its route, and two that are no calls by names of their own.

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
  "PUT /me/devices/{deviceId}": "put_device",
  "DELETE /me/devices/{deviceId}": "delete_device",
  "POST /api/v1/recipient-profiles": "create_recipient_profile",
  "PATCH /api/v1/recipient-profiles/{profileId}": "change_recipient_profile",
  "DELETE /api/v1/recipient-profiles/{profileId}": "retire_recipient_profile",
  "POST /api/v1/recipient-channels": "create_recipient_channel",
  "PATCH /api/v1/recipient-channels/{channelId}": "change_recipient_channel",
  "DELETE /api/v1/recipient-channels/{channelId}": "retire_recipient_channel",
  "POST /api/v1/recipient-channels/{channelId}/secret": "rotate_secret",
  "DELETE /api/v1/recipient-channels/{channelId}/secret/previous": "forget_old_secrets",
  "POST /api/v1/recipient-channels/{channelId}/verification": "start_verification",
  "PUT /api/v1/recipient-channels/{channelId}/verification": "confirm_verification",
  "POST /api/v1/action-plans": "create_action_plan",
  "DELETE /api/v1/action-plans/{planId}": "retire_action_plan",
  "POST /api/v1/action-plans/{planId}/steps": "create_step",
  "PATCH /api/v1/action-plans/{planId}/steps/{stepId}": "change_step",
  "DELETE /api/v1/action-plans/{planId}/steps/{stepId}": "retire_step",
  "POST /api/v1/action-routes": "create_action_route",
  "PATCH /api/v1/action-routes/{routeId}": "change_action_route",
  "DELETE /api/v1/action-routes/{routeId}": "retire_action_route",
  "POST /api/v1/templates": "create_template",
  "DELETE /api/v1/templates/{templateId}": "retire_template",
  "POST /api/v1/roster/consumers": "create_consumer",
  "DELETE /api/v1/roster/consumers/{consumerId}": "revoke_consumer",
  "matching.details_shown": "details_shown",
  "privacy.forgotten": "forgotten",
};

export const KNOWN_DEEDS = Object.keys(DEEDS);

// Undefined for a deed without words, for example a command of an operator.
export function deedOf(subject) {
  return DEEDS[subject];
}
