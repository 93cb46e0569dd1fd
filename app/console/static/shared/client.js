// Written by scripts/client from the OpenAPI document; do not edit. The same with types is in client.ts.

const OPERATIONS = {
  createTask: ["POST", "/tasks", "body"],
  listTasks: ["GET", "/tasks", "list"],
  getTask: ["GET", "/tasks/{taskId}"],
  listOffers: ["GET", "/tasks/{taskId}/offers"],
  acceptTask: ["PUT", "/tasks/{taskId}/accept"],
  rejectTask: ["PUT", "/tasks/{taskId}/reject"],
  startTask: ["PUT", "/tasks/{taskId}/start"],
  completeTask: ["PUT", "/tasks/{taskId}/complete"],
  withdrawTask: ["PUT", "/tasks/{taskId}/withdraw"],
  cancelTask: ["PUT", "/tasks/{taskId}/cancel"],
  assignTask: ["PUT", "/tasks/{taskId}/assign", "body"],
  moveOn: ["PUT", "/tasks/{taskId}/next"],
  releaseTask: ["PUT", "/tasks/{taskId}/release"],
  showBoard: ["GET", "/api/v1/board", "list"],
  listCandidates: ["GET", "/tasks/{taskId}/candidates", "query"],
  sayOutcome: ["PUT", "/tasks/{taskId}/outcome", "body"],
  listStudents: ["GET", "/api/v1/students", "list"],
  listElders: ["GET", "/api/v1/elders", "list"],
  showMap: ["GET", "/api/v1/map", "query"],
  showFigures: ["GET", "/api/v1/figures", "query"],
  showHealth: ["GET", "/api/v1/health"],
  me: ["GET", "/me"],
  myOffer: ["GET", "/me/offer"],
  putLocation: ["PUT", "/me/location", "body"],
  putAvailability: ["PUT", "/me/availability", "body"],
  putDevice: ["PUT", "/me/devices/{deviceId}", "body"],
  deleteDevice: ["DELETE", "/me/devices/{deviceId}"],
  listMessages: ["GET", "/me/messages", "list"],
  readMessage: ["PUT", "/me/messages/{messageId}/read"],
  listPushes: ["GET", "/me/pushes", "list"],
  createUser: ["POST", "/users", "body"],
  listUsers: ["GET", "/users", "list"],
  getUser: ["GET", "/users/{userId}"],
  patchUser: ["PATCH", "/users/{userId}", "body"],
  putAvailabilityOf: ["PUT", "/users/{userId}/availability", "body"],
  submitNotification: ["POST", "/api/notifications", "body"],
  listNotifications: ["GET", "/api/notifications", "list"],
  getNotification: ["GET", "/api/notifications/{notificationId}"],
  listRecipientProfiles: ["GET", "/api/v1/recipient-profiles", "list"],
  createRecipientProfile: ["POST", "/api/v1/recipient-profiles", "body"],
  getRecipientProfile: ["GET", "/api/v1/recipient-profiles/{profileId}"],
  changeRecipientProfile: ["PATCH", "/api/v1/recipient-profiles/{profileId}", "body"],
  retireRecipientProfile: ["DELETE", "/api/v1/recipient-profiles/{profileId}"],
  listRecipientChannels: ["GET", "/api/v1/recipient-channels", "list"],
  createRecipientChannel: ["POST", "/api/v1/recipient-channels", "body"],
  getRecipientChannel: ["GET", "/api/v1/recipient-channels/{channelId}"],
  changeRecipientChannel: ["PATCH", "/api/v1/recipient-channels/{channelId}", "body"],
  retireRecipientChannel: ["DELETE", "/api/v1/recipient-channels/{channelId}"],
  rotateSecret: ["POST", "/api/v1/recipient-channels/{channelId}/secret"],
  forgetOldSecrets: ["DELETE", "/api/v1/recipient-channels/{channelId}/secret/previous"],
  startVerification: ["POST", "/api/v1/recipient-channels/{channelId}/verification"],
  confirmVerification: ["PUT", "/api/v1/recipient-channels/{channelId}/verification", "body"],
  listActionPlans: ["GET", "/api/v1/action-plans", "list"],
  createActionPlan: ["POST", "/api/v1/action-plans", "body"],
  getActionPlan: ["GET", "/api/v1/action-plans/{planId}"],
  changeActionPlan: ["PATCH", "/api/v1/action-plans/{planId}", "body"],
  retireActionPlan: ["DELETE", "/api/v1/action-plans/{planId}"],
  listSteps: ["GET", "/api/v1/action-plans/{planId}/steps"],
  createStep: ["POST", "/api/v1/action-plans/{planId}/steps", "body"],
  getStep: ["GET", "/api/v1/action-plans/{planId}/steps/{stepId}"],
  changeStep: ["PATCH", "/api/v1/action-plans/{planId}/steps/{stepId}", "body"],
  retireStep: ["DELETE", "/api/v1/action-plans/{planId}/steps/{stepId}"],
  listActionRoutes: ["GET", "/api/v1/action-routes", "list"],
  createActionRoute: ["POST", "/api/v1/action-routes", "body"],
  getActionRoute: ["GET", "/api/v1/action-routes/{routeId}"],
  changeActionRoute: ["PATCH", "/api/v1/action-routes/{routeId}", "body"],
  retireActionRoute: ["DELETE", "/api/v1/action-routes/{routeId}"],
  listTemplates: ["GET", "/api/v1/templates", "list"],
  createTemplate: ["POST", "/api/v1/templates", "body"],
  getTemplate: ["GET", "/api/v1/templates/{templateId}"],
  changeTemplate: ["PATCH", "/api/v1/templates/{templateId}", "body"],
  retireTemplate: ["DELETE", "/api/v1/templates/{templateId}"],
  previewTemplate: ["POST", "/api/v1/templates/{templateId}/preview", "body"],
  previewWords: ["POST", "/api/v1/templates/preview", "body"],
  requestAction: ["POST", "/api/v1/actions", "body"],
  listActions: ["GET", "/api/v1/actions", "list"],
  getAction: ["GET", "/api/v1/actions/{actionId}"],
  listDeadLetters: ["GET", "/api/v1/dead-letters", "list"],
  getDeadLetter: ["GET", "/api/v1/dead-letters/{deadLetterId}"],
  redriveDeadLetter: ["POST", "/api/v1/dead-letters/{deadLetterId}/redrive"],
  redriveDeadLetters: ["POST", "/api/v1/dead-letters/redrive", "body"],
  discardDeadLetter: ["POST", "/api/v1/dead-letters/{deadLetterId}/discard"],
  discardDeadLetters: ["POST", "/api/v1/dead-letters/discard", "body"],
  requestJob: ["POST", "/api/v1/jobs", "body"],
  listJobs: ["GET", "/api/v1/jobs", "list"],
  listScripts: ["GET", "/api/v1/jobs/catalogue"],
  getJob: ["GET", "/api/v1/jobs/{jobId}"],
  cancelJob: ["PUT", "/api/v1/jobs/{jobId}/cancel"],
  getArtifact: ["GET", "/api/v1/jobs/{jobId}/artifacts/{artifactName}", "blob"],
  listRuns: ["GET", "/api/v1/roster/runs", "list"],
  getRun: ["GET", "/api/v1/roster/runs/{runId}"],
  approveRun: ["POST", "/api/v1/roster/runs/{runId}/approve"],
  pushList: ["PUT", "/api/v1/roster/{kind}/lists/{listName}", "file"],
  listChanges: ["GET", "/api/v1/{kind}/changes", "query"],
  createConsumer: ["POST", "/api/v1/roster/consumers", "body"],
  listConsumers: ["GET", "/api/v1/roster/consumers", "list"],
  revokeConsumer: ["DELETE", "/api/v1/roster/consumers/{consumerId}"],
  listAuditEntries: ["GET", "/api/v1/audit", "list"],
  healthz: ["GET", "/healthz"],
  readyz: ["GET", "/readyz"],
  pageSettings: ["GET", "/page-settings.json"],
  listDemoPeople: ["GET", "/demo/people"],
  signInAsDemoPerson: ["POST", "/demo/sign-in", "body"],
};

const HEADERS = {
  idempotencyKey: "Idempotency-Key",
  rosterSha256: "Roster-Sha256",
};

/** The service answered, and the answer is an error. `message` is for logs; pages choose their words by `code`. */
export class ProblemError extends Error {
  constructor(status, problem, retryAfterS) {
    super(problem.detail ?? problem.title ?? `HTTP ${status}`);
    this.name = "ProblemError";
    this.status = status;
    // A proxy in front of the service answers without a code.
    this.code = problem.code ?? `http_${status}`;
    this.title = problem.title ?? "";
    this.detail = problem.detail ?? "";
    this.fields = problem.errors ?? [];
    this.retryAfterS = retryAfterS;
  }
}

/** No answer of the service has arrived. Whether the request has arrived is not known. */
export class Unreachable extends Error {
  constructor(reason, cause) {
    super(`The service does not answer: ${reason}`, { cause });
    this.name = "Unreachable";
    this.reason = reason;
  }
}

export function createClient(options) {
  const client = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    client[name] = (...given) => call(options, operation, given);
  }
  return client;
}

/** Arguments come in this order: the parameters of the path, the body or the query if there is one, the options. */
function call(client, [method, path, kind], given) {
  const rest = [...given];
  const address = (client.baseUrl ?? "") + path.replace(/\{\w+\}/g, () => segment(rest.shift()));
  const input = kind && kind !== "blob" ? rest.shift() : undefined;
  const options = rest.shift() ?? {};
  if (kind !== "query" && kind !== "list") return send(client, method, address, kind, input, options);
  const ask = (query) => send(client, method, address + search(query), kind, undefined, options);
  const first = ask(input ?? {});
  if (kind === "query") return first;
  return Object.assign(first, { [Symbol.asyncIterator]: () => items(first, (cursor) => ask({ ...input, cursor })) });
}

async function* items(first, next) {
  let page = await first;
  yield* page.items;
  while (page.nextCursor) {
    page = await next(page.nextCursor);
    yield* page.items;
  }
}

function segment(value) {
  const text = String(value ?? "");
  // A URL loses these segments, encoded or not, and would name another path.
  if (text === "" || text === "." || text === "..") throw new TypeError("a parameter of the path is missing");
  return encodeURIComponent(text);
}

function search(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function send(
  client,
  method,
  url,
  kind,
  input,
  { signal, timeoutMs = client.timeoutMs ?? 15_000, ...headers },
) {
  const stop = new AbortController();
  const isJson = kind === "body" && input !== undefined;
  const request = {
    method,
    headers: allHeaders(client, headers, isJson),
    body: isJson ? JSON.stringify(input) : input,
    signal: stop.signal,
  };
  const abort = () => stop.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  const timer = setTimeout(() => stop.abort(new Unreachable("TIMEOUT")), timeoutMs);
  try {
    return await read(await (client.fetch ?? globalThis.fetch)(url, request), kind);
  } catch (error) {
    if (error instanceof ProblemError || error instanceof Unreachable) throw error;
    if (stop.signal.aborted) throw stop.signal.reason;
    throw new Unreachable("NETWORK", error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

function allHeaders({ token, locale }, named, isJson) {
  const headers = new Headers();
  const signedInWith = token();
  const language = typeof locale === "function" ? locale() : locale;
  if (signedInWith) headers.set("Authorization", `Bearer ${signedInWith}`);
  if (language) headers.set("Accept-Language", language);
  if (isJson) headers.set("Content-Type", "application/json");
  for (const [name, header] of Object.entries(HEADERS)) if (named[name]) headers.set(header, named[name]);
  return headers;
}

async function read(response, kind) {
  if (response.ok && kind === "blob") return response.blob();
  if (response.status === 204) return null;
  const content = parse(await response.text());
  if (!response.ok) {
    const isOurs = response.headers.get("Content-Type")?.startsWith("application/problem+json");
    throw new ProblemError(response.status, isOurs && content ? content : {}, retryAfterS(response.headers));
  }
  // For example the page of a network that asks for a sign-in of its own.
  if (content === undefined) throw new Unreachable("INVALID_ANSWER");
  return content;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function retryAfterS(headers) {
  const text = headers.get("Retry-After");
  if (!text) return null;
  const seconds = Number(text);
  const left = Number.isNaN(seconds) ? (Date.parse(text) - Date.now()) / 1000 : seconds;
  return Number.isNaN(left) ? null : Math.max(left, 0);
}
