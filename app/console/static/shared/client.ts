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
  constructor(status: number, problem: ReceivedProblem, retryAfterS: number | null) {
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
  constructor(reason: UnreachableReason, cause?: unknown) {
    super(`The service does not answer: ${reason}`, { cause });
    this.name = "Unreachable";
    this.reason = reason;
  }
}

export function createClient(options: ClientOptions): Client {
  const client: any = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    client[name] = (...given: unknown[]) => call(options, operation, given);
  }
  return client;
}

/** Arguments come in this order: the parameters of the path, the body or the query if there is one, the options. */
function call(client: ClientOptions, [method, path, kind]: Operation, given: any[]): Promise<unknown> {
  const rest = [...given];
  const address = (client.baseUrl ?? "") + path.replace(/\{\w+\}/g, () => segment(rest.shift()));
  const input = kind && kind !== "blob" ? rest.shift() : undefined;
  const options = rest.shift() ?? {};
  if (kind !== "query" && kind !== "list") return send(client, method, address, kind, input, options);
  const ask = (query: object) => send(client, method, address + search(query), kind, undefined, options);
  const first = ask(input ?? {});
  if (kind === "query") return first;
  return Object.assign(first, { [Symbol.asyncIterator]: () => items(first, (cursor) => ask({ ...input, cursor })) });
}

async function* items(first: Promise<any>, next: (cursor: string) => Promise<any>) {
  let page = await first;
  yield* page.items;
  while (page.nextCursor) {
    page = await next(page.nextCursor);
    yield* page.items;
  }
}

function segment(value: unknown): string {
  const text = String(value ?? "");
  // A URL loses these segments, encoded or not, and would name another path.
  if (text === "" || text === "." || text === "..") throw new TypeError("a parameter of the path is missing");
  return encodeURIComponent(text);
}

function search(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function send(
  client: ClientOptions,
  method: string,
  url: string,
  kind: Kind | undefined,
  input: any,
  { signal, timeoutMs = client.timeoutMs ?? 15_000, ...headers }: AnyOptions,
): Promise<unknown> {
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

function allHeaders({ token, locale }: ClientOptions, named: NamedHeaders, isJson: boolean): Headers {
  const headers = new Headers();
  const signedInWith = token();
  const language = typeof locale === "function" ? locale() : locale;
  if (signedInWith) headers.set("Authorization", `Bearer ${signedInWith}`);
  if (language) headers.set("Accept-Language", language);
  if (isJson) headers.set("Content-Type", "application/json");
  for (const [name, header] of Object.entries(HEADERS)) if (named[name]) headers.set(header, named[name]);
  return headers;
}

async function read(response: Response, kind: Kind | undefined): Promise<unknown> {
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

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function retryAfterS(headers: Headers): number | null {
  const text = headers.get("Retry-After");
  if (!text) return null;
  const seconds = Number(text);
  const left = Number.isNaN(seconds) ? (Date.parse(text) - Date.now()) / 1000 : seconds;
  return Number.isNaN(left) ? null : Math.max(left, 0);
}

// Types only from here.

export interface ClientOptions {
  /** The address before every path. Pages are served by the service itself and need none. */
  baseUrl?: string;
  /** Asked for every call; null while nobody is signed in. */
  token: () => string | null;
  locale?: string | (() => string);
  fetch?: typeof globalThis.fetch;
  /** The time for the whole answer, 15,000 by default. */
  timeoutMs?: number;
}

export interface CallOptions {
  /** Aborts the call, which then throws the signal's reason. */
  signal?: AbortSignal;
  timeoutMs?: number;
}

export interface ProblemError {
  readonly status: number;
  /** One of `ErrorCodes` of the method; `http_502` and the like if the answer is not from the service. */
  readonly code: ErrorCode | `http_${number}`;
  readonly title: string;
  readonly detail: string;
  /** One for each invalid field. */
  readonly fields: NonNullable<Problem["errors"]>;
  readonly retryAfterS: number | null;
}

export type UnreachableReason = "NETWORK" | "TIMEOUT" | "INVALID_ANSWER";

export interface Unreachable {
  readonly reason: UnreachableReason;
}

/** Awaited it is one page, and `for await` goes through the items of that page and all later ones. */
export interface Listing<Page extends AnyPage> extends Promise<Page>, AsyncIterable<Page["items"][number]> {}

interface AnyPage {
  items: unknown[];
  nextCursor: string | null;
}

type ReceivedProblem = Partial<Problem> & { code?: ErrorCode };
type NamedHeaders = Record<string, string>;
type AnyOptions = CallOptions & Record<string, any>;
type Kind = "body" | "file" | "query" | "list" | "blob";
type Operation = [method: string, path: string, kind?: Kind];

export interface Client {
  /** Call for help. */
  createTask(body?: NewTaskBody, options?: CallOptions & { idempotencyKey?: string }): Promise<Task>;
  /** List tasks, newest first. */
  listTasks(query?: { limit?: number; cursor?: string; status?: "PENDING" | "ASSIGNED" | "STARTED" | "COMPLETED" | "TIMED_OUT" | "CANCELLED" }, options?: CallOptions): Listing<TaskPage>;
  /** Show one task, with the fields that the caller may see. */
  getTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Show who was asked, in what order and why. */
  listOffers(taskId: string, options?: CallOptions): Promise<Offers>;
  /** Accept the task that is offered to you. Repeating it is harmless. */
  acceptTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Reject the task that is offered to you. Repeating it is harmless. */
  rejectTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Report that you are with the elder. */
  startTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Report that the elder was helped. */
  completeTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Give back a task that you have accepted; the search continues without you. */
  withdrawTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** End the task; help is not needed any more. */
  cancelTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** Give the task to a student you have talked to. */
  assignTask(taskId: string, body: AssignBody, options?: CallOptions): Promise<Task>;
  /** Stop waiting for the student who is being asked, and ask the next one. */
  moveOn(taskId: string, options?: CallOptions): Promise<Task>;
  /** Take the task from its student; the search continues without this student. */
  releaseTask(taskId: string, options?: CallOptions): Promise<Task>;
  /** List open tasks, and tasks that nobody took until somebody says what became of them. */
  showBoard(query?: { limit?: number; cursor?: string }, options?: CallOptions): Listing<TaskPage>;
  /** List active students to whom I could assign the task by hand, nearest first. */
  listCandidates(taskId: string, query?: { search?: string; limit?: number }, options?: CallOptions): Promise<Candidates>;
  /** Say what became of a task that nobody took. */
  sayOutcome(taskId: string, body: OutcomeBody, options?: CallOptions): Promise<Task>;
  /** List students, newest first. */
  listStudents(query?: { limit?: number; cursor?: string; search?: string; onDuty?: boolean; suspended?: boolean }, options?: CallOptions): Listing<ListedStudentPage>;
  /** List active elders, newest first, to press for one who calls. */
  listElders(query?: { limit?: number; cursor?: string; search?: string }, options?: CallOptions): Listing<ListedElderPage>;
  /** Show the active students in a part of the map, at most 2,000, those on duty first. */
  showMap(query: { south: number; west: number; north: number; east: number }, options?: CallOptions): Promise<StudentMap>;
  /** Show how a month went: tasks, waiting, unmet need, load and silence. */
  showFigures(query?: { month?: string }, options?: CallOptions): Promise<Figures>;
  /** Show how the parts of the service are doing. */
  showHealth(options?: CallOptions): Promise<HealthOfParts>;
  /** Show who I am, my open task and my live offer. */
  me(options?: CallOptions): Promise<Me>;
  /** Show the task that I am asked to take. 204 if there is none. */
  myOffer(options?: CallOptions): Promise<MyOffer | null>;
  /** Report my location. */
  putLocation(body: Point, options?: CallOptions): Promise<null>;
  /** Go on duty or off duty. Going off duty withdraws an offer that I have not answered. */
  putAvailability(body: AvailabilityBody, options?: CallOptions): Promise<null>;
  /** Register this phone for notifications. */
  putDevice(deviceId: string, body: DeviceBody, options?: CallOptions): Promise<null>;
  /** Send no more notifications to this phone. */
  deleteDevice(deviceId: string, options?: CallOptions): Promise<null>;
  /** List my in-app messages, newest first. */
  listMessages(query?: { limit?: number; cursor?: string; unread?: boolean }, options?: CallOptions): Listing<MessagePage>;
  /** Mark a message as read. Repeating it is harmless. */
  readMessage(messageId: number, options?: CallOptions): Promise<null>;
  /** List the pushes that a copy without providers has recorded for me, newest first. */
  listPushes(query?: { limit?: number; cursor?: string }, options?: CallOptions): Listing<RecordedPushPage>;
  /** Add a user. A new student is on duty. */
  createUser(body: NewUserBody, options?: CallOptions): Promise<User>;
  /** List users, newest first. */
  listUsers(query?: { limit?: number; cursor?: string; role?: "ELDER" | "STUDENT" | "COORDINATOR" | "ADMIN"; active?: boolean; search?: string }, options?: CallOptions): Listing<UserPage>;
  /** Show one user. */
  getUser(userId: number, options?: CallOptions): Promise<User>;
  /** Change a user. */
  patchUser(userId: number, body?: UserChangesBody, options?: CallOptions): Promise<User>;
  /** Put a student on duty, or off duty until a coordinator says otherwise. */
  putAvailabilityOf(userId: number, body: AvailabilityBody, options?: CallOptions): Promise<null>;
  /** Send a notification. */
  submitNotification(body: NewNotificationBody, options?: CallOptions & { idempotencyKey?: string }): Promise<Submitted>;
  /** List notifications, newest first. */
  listNotifications(query?: { limit?: number; cursor?: string; recipientUserId?: number; status?: "ACCEPTED" | "SENDING" | "RETRYING" | "SENT" | "DEAD" | "EXPIRED" | "CANCELLED"; notificationType?: "EMAIL" | "SMS" | "PUSH" | "IN_APP" | "WEBHOOK" | "WHATSAPP" | "AUDIT" }, options?: CallOptions): Listing<NotificationPage>;
  /** Show one notification with every attempt to send it. */
  getNotification(notificationId: string, options?: CallOptions): Promise<NotificationInFull>;
  /** List recipient profiles. */
  listRecipientProfiles(query?: { limit?: number; cursor?: string; includeRetired?: boolean; key?: string; deviceId?: string; userId?: number; status?: boolean }, options?: CallOptions): Listing<RecipientProfilePage>;
  /** Create a recipient profile. */
  createRecipientProfile(body: NewProfileBody, options?: CallOptions): Promise<RecipientProfile>;
  /** Show a recipient profile. */
  getRecipientProfile(profileId: number, options?: CallOptions): Promise<RecipientProfile>;
  /** Change a recipient profile. */
  changeRecipientProfile(profileId: number, body?: ProfileChangesBody, options?: CallOptions): Promise<RecipientProfile>;
  /** Retire a recipient profile. */
  retireRecipientProfile(profileId: number, options?: CallOptions): Promise<null>;
  /** List recipient channels. */
  listRecipientChannels(query?: { limit?: number; cursor?: string; includeRetired?: boolean; profileId?: number; channelType?: "email" | "sms" | "push" | "in_app" | "webhook" | "whatsapp" | "audit" }, options?: CallOptions): Listing<RecipientChannelPage>;
  /** Create a recipient channel. */
  createRecipientChannel(body: NewChannelBody, options?: CallOptions): Promise<NewRecipientChannel>;
  /** Show a recipient channel. */
  getRecipientChannel(channelId: number, options?: CallOptions): Promise<RecipientChannel>;
  /** Change a recipient channel. */
  changeRecipientChannel(channelId: number, body?: ChannelChangesBody, options?: CallOptions): Promise<RecipientChannel>;
  /** Retire a recipient channel. */
  retireRecipientChannel(channelId: number, options?: CallOptions): Promise<null>;
  /** Give a webhook a new secret. */
  rotateSecret(channelId: number, options?: CallOptions): Promise<Secret>;
  /** Sign with the newest secret only. */
  forgetOldSecrets(channelId: number, options?: CallOptions): Promise<null>;
  /** Send a code over the channel, or a challenge to a webhook. */
  startVerification(channelId: number, options?: CallOptions): Promise<VerificationStarted>;
  /** Confirm the code that arrived. */
  confirmVerification(channelId: number, body: VerificationBody, options?: CallOptions): Promise<RecipientChannel>;
  /** List action plans. */
  listActionPlans(query?: { limit?: number; cursor?: string; includeRetired?: boolean; status?: boolean; key?: string }, options?: CallOptions): Listing<ActionPlanPage>;
  /** Create an action plan. */
  createActionPlan(body: NewPlanBody, options?: CallOptions): Promise<ActionPlan>;
  /** Show an action plan. */
  getActionPlan(planId: number, options?: CallOptions): Promise<ActionPlan>;
  /** Change an action plan. */
  changeActionPlan(planId: number, body?: PlanChangesBody, options?: CallOptions): Promise<ActionPlan>;
  /** Retire an action plan. */
  retireActionPlan(planId: number, options?: CallOptions): Promise<null>;
  /** List the steps of a plan, in the order in which they run. */
  listSteps(planId: number, options?: CallOptions): Promise<ActionPlanStepPage>;
  /** Add a step to a plan. */
  createStep(planId: number, body: NewStepBody, options?: CallOptions): Promise<ActionPlanStep>;
  /** Show a step of a plan, a retired one, too. */
  getStep(planId: number, stepId: number, options?: CallOptions): Promise<ActionPlanStep>;
  /** Change a step of a plan. */
  changeStep(planId: number, stepId: number, body?: StepChangesBody, options?: CallOptions): Promise<ActionPlanStep>;
  /** Retire a step of a plan, and its routes with it. */
  retireStep(planId: number, stepId: number, options?: CallOptions): Promise<null>;
  /** List action routes. */
  listActionRoutes(query?: { limit?: number; cursor?: string; includeRetired?: boolean; actionPlanId?: number; recipientProfileId?: number }, options?: CallOptions): Listing<ActionRoutePage>;
  /** Create an action route. */
  createActionRoute(body: NewRouteBody, options?: CallOptions): Promise<ActionRoute>;
  /** Show an action route. */
  getActionRoute(routeId: number, options?: CallOptions): Promise<ActionRoute>;
  /** Change an action route. */
  changeActionRoute(routeId: number, body?: RouteChangesBody, options?: CallOptions): Promise<ActionRoute>;
  /** Retire an action route. */
  retireActionRoute(routeId: number, options?: CallOptions): Promise<null>;
  /** List templates. */
  listTemplates(query?: { limit?: number; cursor?: string; includeRetired?: boolean; key?: string; locale?: "tr" | "en" }, options?: CallOptions): Listing<TemplatePage>;
  /** Create a template. */
  createTemplate(body: NewTemplateBody, options?: CallOptions): Promise<Template>;
  /** Show a template. */
  getTemplate(templateId: number, options?: CallOptions): Promise<Template>;
  /** Change a template. */
  changeTemplate(templateId: number, body?: TemplateChangesBody, options?: CallOptions): Promise<Template>;
  /** Retire a template. */
  retireTemplate(templateId: number, options?: CallOptions): Promise<null>;
  /** Render a template with variables. */
  previewTemplate(templateId: number, body?: PreviewBody, options?: CallOptions): Promise<Words>;
  /** Run a plan. */
  requestAction(body: NewActionBody, options?: CallOptions): Promise<ActionInFull>;
  /** List actions, newest first. */
  listActions(query?: { limit?: number; cursor?: string; status?: "RUNNING" | "DONE" | "FAILED" | "CANCELLED"; actionPlanId?: number }, options?: CallOptions): Listing<ActionPage>;
  /** Show one action with its steps and their notifications. */
  getAction(actionId: string, options?: CallOptions): Promise<ActionInFull>;
  /** List dead letters, newest first. */
  listDeadLetters(query?: { limit?: number; cursor?: string; status?: "OPEN" | "REDRIVEN" | "COVERED" | "DISCARDED" | "EXPIRED"; channelType?: string; errorCode?: string; actionPlanId?: number; since?: string; until?: string }, options?: CallOptions): Listing<DeadLetterPage>;
  /** Show one dead letter. */
  getDeadLetter(deadLetterId: string, options?: CallOptions): Promise<DeadLetter>;
  /** Redrive one dead letter. */
  redriveDeadLetter(deadLetterId: string, options?: CallOptions): Promise<DeadLetter>;
  /** Redrive all dead letters that match, the oldest first. */
  redriveDeadLetters(body?: MeantBody, options?: CallOptions): Promise<Redriven>;
  /** Discard one dead letter: close it without sending it again. */
  discardDeadLetter(deadLetterId: string, options?: CallOptions): Promise<DeadLetter>;
  /** Discard all dead letters that match, the oldest first. */
  discardDeadLetters(body?: MeantBody, options?: CallOptions): Promise<Discarded>;
  /** Run a script. */
  requestJob(body: NewJobBody, options?: CallOptions & { idempotencyKey?: string }): Promise<JobInFull>;
  /** List jobs, newest first. */
  listJobs(query?: { limit?: number; cursor?: string; name?: string; status?: "QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED" }, options?: CallOptions): Listing<JobPage>;
  /** List the scripts that can be run, with their parameters. */
  listScripts(options?: CallOptions): Promise<Scripts>;
  /** Show one job with its progress, its result, what it printed and the list of its artifacts. */
  getJob(jobId: string, options?: CallOptions): Promise<JobInFull>;
  /** Cancel a job. */
  cancelJob(jobId: string, options?: CallOptions): Promise<JobInFull>;
  /** Download one artifact of a job. */
  getArtifact(jobId: string, artifactName: string, options?: CallOptions): Promise<Blob>;
  /** List runs, newest first. */
  listRuns(query?: { limit?: number; cursor?: string }, options?: CallOptions): Listing<RosterRunPage>;
  /** Show one run with its report. */
  getRun(runId: number, options?: CallOptions): Promise<RosterRun>;
  /** Let the next run apply what this one held back: once, and only if the lists are still the same. */
  approveRun(runId: number, options?: CallOptions): Promise<Approved>;
  /** Push a list as a ZIP archive. */
  pushList(kind: string, listName: string, file: Blob | ArrayBuffer, options?: CallOptions & { rosterSha256?: string }): Promise<KeptList>;
  /** List what has changed in a list. */
  listChanges(kind: string, query?: { since?: string; until?: string; page?: number; pageSize?: number; cursor?: string }, options?: CallOptions): Promise<Changes>;
  /** Add a consumer of one kind. */
  createConsumer(body: NewConsumerBody, options?: CallOptions): Promise<NewConsumer>;
  /** List the consumers, newest first, with those whose tokens are revoked. */
  listConsumers(query?: { limit?: number; cursor?: string }, options?: CallOptions): Listing<ConsumerPage>;
  /** Revoke the token of a consumer. */
  revokeConsumer(consumerId: number, options?: CallOptions): Promise<null>;
  /** List the audit trail, newest first. */
  listAuditEntries(query?: { limit?: number; cursor?: string }, options?: CallOptions): Listing<AuditEntryPage>;
  /** Show that the process is alive. */
  healthz(options?: CallOptions): Promise<Alive>;
  /** Show whether this copy is ready for requests. */
  readyz(options?: CallOptions): Promise<Ready>;
  /** Show what the pages need to know before anybody has signed in. */
  pageSettings(options?: CallOptions): Promise<PageSettings>;
  /** List the people of the demo neighbourhood, whom anybody may sign in as. */
  listDemoPeople(options?: CallOptions): Promise<DemoPeople>;
  /** Get a token of a demo person. */
  signInAsDemoPerson(body: DemoSignInBody, options?: CallOptions): Promise<DemoToken>;
}

/** Every code of the service. */
export type ErrorCode = "anonymous_refused" | "archive_not_found" | "artifact_not_found" | "backlog_full"
  | "bad_request" | "body_too_large" | "cannot_deactivate_yourself" | "catalogue_busy" | "changes_gone"
  | "channel_already_verified" | "channel_disabled" | "consumer_forbidden" | "consumer_not_found"
  | "database_unavailable" | "dead_letter_closed" | "dead_letter_expired" | "dead_letter_not_redrivable"
  | "device_not_found" | "device_taken" | "draining" | "evaluation_key_reused" | "events_gone" | "figures_too_slow"
  | "firebase_uid_taken" | "headers_too_large" | "idempotency_key_reused" | "illegal_step" | "internal_error"
  | "invalid_input" | "invalid_value" | "job_ended" | "job_not_found" | "list_not_taken" | "malformed_json"
  | "message_not_found" | "method_not_allowed" | "no_list_yet" | "no_room_for_stream" | "not_a_webhook" | "not_assigned"
  | "not_found" | "not_your_elder" | "not_your_profile" | "nothing_held_back" | "offer_accepted" | "offer_expired"
  | "offer_rejected" | "offer_released" | "offer_withdrawn" | "overloaded" | "plan_not_found" | "profile_has_channels"
  | "pushes_not_recorded" | "range_not_satisfiable" | "request_too_slow" | "role_forbidden" | "roster_folder_missing"
  | "roster_run_not_found" | "route_unknown" | "script_folder_gone" | "sending_limit" | "shipped_plan"
  | "shipped_template" | "step_order_taken" | "student_unavailable" | "suspended" | "task_not_found" | "template_in_use"
  | "template_taken" | "token_expired" | "token_invalid" | "token_missing" | "token_revoked" | "too_many_requests"
  | "too_many_streams" | "try_again" | "unavailable" | "unknown_kind" | "unknown_list" | "unsupported_media_type"
  | "user_deactivated" | "user_not_found" | "user_unknown" | "verification_expired" | "verification_needs_no_code"
  | "verification_not_running" | "verification_too_soon" | "verification_tries_used_up" | "verifier_unavailable"
  | "wrong_verification_code";

/** The codes of every method that needs a token. */
export type CommonErrorCode = "anonymous_refused" | "bad_request" | "body_too_large" | "database_unavailable"
  | "internal_error" | "invalid_input" | "overloaded" | "token_expired" | "token_invalid" | "token_missing"
  | "token_revoked" | "unavailable" | "user_deactivated" | "user_unknown" | "verifier_unavailable";

/** The codes of each method. */
export interface ErrorCodes {
  createTask: CommonErrorCode | "idempotency_key_reused" | "invalid_value" | "malformed_json" | "not_your_elder"
    | "role_forbidden" | "too_many_requests" | "try_again" | "unsupported_media_type";
  listTasks: CommonErrorCode | "invalid_value";
  getTask: CommonErrorCode | "task_not_found";
  listOffers: CommonErrorCode | "role_forbidden" | "task_not_found";
  acceptTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  rejectTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  startTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  completeTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted"
    | "offer_expired" | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden"
    | "student_unavailable" | "task_not_found" | "try_again" | "unsupported_media_type";
  withdrawTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted"
    | "offer_expired" | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden"
    | "student_unavailable" | "task_not_found" | "try_again" | "unsupported_media_type";
  cancelTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  assignTask: CommonErrorCode | "illegal_step" | "invalid_value" | "malformed_json" | "not_assigned" | "offer_accepted"
    | "offer_expired" | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden"
    | "student_unavailable" | "task_not_found" | "try_again" | "unsupported_media_type";
  moveOn: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  releaseTask: CommonErrorCode | "illegal_step" | "malformed_json" | "not_assigned" | "offer_accepted" | "offer_expired"
    | "offer_rejected" | "offer_released" | "offer_withdrawn" | "role_forbidden" | "student_unavailable"
    | "task_not_found" | "try_again" | "unsupported_media_type";
  showBoard: CommonErrorCode | "invalid_value" | "role_forbidden";
  listCandidates: CommonErrorCode | "role_forbidden" | "task_not_found";
  sayOutcome: CommonErrorCode | "illegal_step" | "malformed_json" | "role_forbidden" | "task_not_found"
    | "unsupported_media_type";
  listStudents: CommonErrorCode | "invalid_value" | "role_forbidden";
  listElders: CommonErrorCode | "invalid_value" | "role_forbidden";
  showMap: CommonErrorCode | "invalid_value" | "role_forbidden";
  showFigures: CommonErrorCode | "figures_too_slow" | "role_forbidden";
  showHealth: CommonErrorCode | "role_forbidden";
  me: CommonErrorCode;
  myOffer: CommonErrorCode | "role_forbidden";
  putLocation: CommonErrorCode | "malformed_json" | "role_forbidden" | "too_many_requests" | "try_again"
    | "unsupported_media_type";
  putAvailability: CommonErrorCode | "malformed_json" | "role_forbidden" | "suspended" | "try_again"
    | "unsupported_media_type";
  putDevice: CommonErrorCode | "device_taken" | "invalid_value" | "malformed_json" | "unsupported_media_type";
  deleteDevice: CommonErrorCode | "device_not_found";
  listMessages: CommonErrorCode | "invalid_value";
  readMessage: CommonErrorCode | "malformed_json" | "message_not_found" | "unsupported_media_type";
  listPushes: CommonErrorCode | "invalid_value" | "pushes_not_recorded";
  createUser: CommonErrorCode | "firebase_uid_taken" | "malformed_json" | "role_forbidden" | "unsupported_media_type";
  listUsers: CommonErrorCode | "invalid_value" | "role_forbidden";
  getUser: CommonErrorCode | "role_forbidden" | "user_not_found";
  patchUser: CommonErrorCode | "cannot_deactivate_yourself" | "firebase_uid_taken" | "invalid_value" | "malformed_json"
    | "role_forbidden" | "try_again" | "unsupported_media_type" | "user_not_found";
  putAvailabilityOf: CommonErrorCode | "malformed_json" | "not_found" | "role_forbidden" | "try_again"
    | "unsupported_media_type";
  submitNotification: CommonErrorCode | "backlog_full" | "draining" | "idempotency_key_reused" | "invalid_value"
    | "malformed_json" | "role_forbidden" | "sending_limit" | "unsupported_media_type";
  listNotifications: CommonErrorCode | "invalid_value" | "role_forbidden";
  getNotification: CommonErrorCode | "not_found" | "role_forbidden";
  listRecipientProfiles: CommonErrorCode | "invalid_value" | "role_forbidden";
  createRecipientProfile: CommonErrorCode | "invalid_value" | "malformed_json" | "not_your_profile"
    | "profile_has_channels" | "role_forbidden" | "unsupported_media_type";
  getRecipientProfile: CommonErrorCode | "not_found" | "role_forbidden";
  changeRecipientProfile: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "not_your_profile"
    | "profile_has_channels" | "role_forbidden" | "unsupported_media_type";
  retireRecipientProfile: CommonErrorCode | "not_found" | "not_your_profile" | "role_forbidden";
  listRecipientChannels: CommonErrorCode | "invalid_value" | "role_forbidden";
  createRecipientChannel: CommonErrorCode | "invalid_value" | "malformed_json" | "not_your_profile" | "role_forbidden"
    | "unsupported_media_type";
  getRecipientChannel: CommonErrorCode | "not_found" | "role_forbidden";
  changeRecipientChannel: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "not_your_profile"
    | "role_forbidden" | "unsupported_media_type";
  retireRecipientChannel: CommonErrorCode | "not_found" | "not_your_profile" | "role_forbidden";
  rotateSecret: CommonErrorCode | "malformed_json" | "not_a_webhook" | "not_found" | "not_your_profile"
    | "role_forbidden" | "unsupported_media_type";
  forgetOldSecrets: CommonErrorCode | "not_a_webhook" | "not_found" | "not_your_profile" | "role_forbidden";
  startVerification: CommonErrorCode | "channel_already_verified" | "channel_disabled" | "malformed_json" | "not_found"
    | "not_your_profile" | "role_forbidden" | "sending_limit" | "unsupported_media_type" | "verification_too_soon";
  confirmVerification: CommonErrorCode | "malformed_json" | "not_found" | "not_your_profile" | "role_forbidden"
    | "unsupported_media_type" | "verification_expired" | "verification_needs_no_code" | "verification_not_running"
    | "verification_tries_used_up" | "wrong_verification_code";
  listActionPlans: CommonErrorCode | "invalid_value" | "role_forbidden";
  createActionPlan: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden" | "unsupported_media_type";
  getActionPlan: CommonErrorCode | "not_found" | "role_forbidden";
  changeActionPlan: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden"
    | "unsupported_media_type";
  retireActionPlan: CommonErrorCode | "not_found" | "role_forbidden" | "shipped_plan";
  listSteps: CommonErrorCode | "not_found" | "role_forbidden";
  createStep: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden" | "step_order_taken"
    | "unsupported_media_type";
  getStep: CommonErrorCode | "not_found" | "role_forbidden";
  changeStep: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden" | "step_order_taken"
    | "unsupported_media_type";
  retireStep: CommonErrorCode | "not_found" | "role_forbidden" | "shipped_plan";
  listActionRoutes: CommonErrorCode | "invalid_value" | "role_forbidden";
  createActionRoute: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden" | "unsupported_media_type";
  getActionRoute: CommonErrorCode | "not_found" | "role_forbidden";
  changeActionRoute: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden"
    | "unsupported_media_type";
  retireActionRoute: CommonErrorCode | "not_found" | "role_forbidden";
  listTemplates: CommonErrorCode | "invalid_value" | "role_forbidden";
  createTemplate: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden" | "template_taken"
    | "unsupported_media_type";
  getTemplate: CommonErrorCode | "not_found" | "role_forbidden";
  changeTemplate: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden"
    | "template_taken" | "unsupported_media_type";
  retireTemplate: CommonErrorCode | "not_found" | "role_forbidden" | "shipped_template" | "template_in_use";
  previewTemplate: CommonErrorCode | "invalid_value" | "malformed_json" | "not_found" | "role_forbidden"
    | "unsupported_media_type";
  requestAction: CommonErrorCode | "backlog_full" | "draining" | "evaluation_key_reused" | "invalid_value"
    | "malformed_json" | "plan_not_found" | "role_forbidden" | "sending_limit" | "unsupported_media_type";
  listActions: CommonErrorCode | "invalid_value" | "role_forbidden";
  getAction: CommonErrorCode | "not_found" | "role_forbidden";
  listDeadLetters: CommonErrorCode | "invalid_value" | "role_forbidden";
  getDeadLetter: CommonErrorCode | "not_found" | "role_forbidden";
  redriveDeadLetter: CommonErrorCode | "dead_letter_closed" | "dead_letter_expired" | "dead_letter_not_redrivable"
    | "malformed_json" | "not_found" | "role_forbidden" | "unsupported_media_type";
  redriveDeadLetters: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden"
    | "unsupported_media_type";
  discardDeadLetter: CommonErrorCode | "dead_letter_closed" | "malformed_json" | "not_found" | "role_forbidden"
    | "unsupported_media_type";
  discardDeadLetters: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden"
    | "unsupported_media_type";
  requestJob: CommonErrorCode | "catalogue_busy" | "draining" | "idempotency_key_reused" | "invalid_value"
    | "malformed_json" | "role_forbidden" | "unsupported_media_type";
  listJobs: CommonErrorCode | "invalid_value" | "role_forbidden";
  listScripts: CommonErrorCode | "catalogue_busy" | "role_forbidden" | "script_folder_gone";
  getJob: CommonErrorCode | "job_not_found" | "role_forbidden";
  cancelJob: CommonErrorCode | "job_ended" | "job_not_found" | "malformed_json" | "role_forbidden"
    | "unsupported_media_type";
  getArtifact: CommonErrorCode | "artifact_not_found" | "role_forbidden";
  listRuns: CommonErrorCode | "invalid_value" | "role_forbidden";
  getRun: CommonErrorCode | "role_forbidden" | "roster_run_not_found";
  approveRun: CommonErrorCode | "malformed_json" | "nothing_held_back" | "role_forbidden" | "roster_run_not_found"
    | "unsupported_media_type";
  pushList: CommonErrorCode | "consumer_forbidden" | "list_not_taken" | "role_forbidden" | "roster_folder_missing"
    | "unknown_kind" | "unknown_list";
  listChanges: CommonErrorCode | "changes_gone" | "consumer_forbidden" | "invalid_value" | "no_list_yet"
    | "role_forbidden" | "unknown_kind";
  createConsumer: CommonErrorCode | "invalid_value" | "malformed_json" | "role_forbidden" | "unsupported_media_type";
  listConsumers: CommonErrorCode | "invalid_value" | "role_forbidden";
  revokeConsumer: CommonErrorCode | "consumer_not_found" | "role_forbidden";
  listAuditEntries: CommonErrorCode | "invalid_value" | "role_forbidden";
  healthz: "bad_request" | "body_too_large" | "internal_error" | "invalid_input";
  readyz: "bad_request" | "body_too_large" | "internal_error" | "invalid_input";
  pageSettings: "bad_request" | "body_too_large" | "internal_error" | "invalid_input";
  listDemoPeople: "bad_request" | "body_too_large" | "internal_error" | "invalid_input" | "route_unknown";
  signInAsDemoPerson: "bad_request" | "body_too_large" | "internal_error" | "invalid_input" | "malformed_json"
    | "route_unknown" | "unsupported_media_type" | "user_not_found";
}

export interface Action {
  id: string;
  status: ActionStatus;
  evaluationKey: string | null;
  actionPlanId: number;
  planKey: string | null;
  origin: Origin;
  personId: number | null;
  taskId: string | null;
  deviceId: string | null;
  streamId: number | string | null;
  groupId: number | null;
  ruleId: number | null;
  traceId: string | null;
  variables: Record<string, unknown>;
  priority: Priority;
  createdAt: string;
  expiresAt: string | null;
  finishedAt: string | null;
}

export interface ActionInFull {
  id: string;
  status: ActionStatus;
  evaluationKey: string | null;
  actionPlanId: number;
  planKey: string | null;
  origin: Origin;
  personId: number | null;
  taskId: string | null;
  deviceId: string | null;
  streamId: number | string | null;
  groupId: number | null;
  ruleId: number | null;
  traceId: string | null;
  variables: Record<string, unknown>;
  priority: Priority;
  createdAt: string;
  expiresAt: string | null;
  finishedAt: string | null;
  steps: ActionStep[];
}

export interface ActionPage {
  items: Action[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface ActionPlan {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  /** Only for plans that are shipped with the product, which requests them by this key. */
  key: string | null;
  name: string;
  description: string;
  status: boolean;
}

export interface ActionPlanPage {
  items: ActionPlan[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface ActionPlanStep {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  actionPlanId: number;
  stepOrder: number;
  channelType: string;
  audience: Audience;
  templateKey: string | null;
  onFailure: OnFailure;
  fallback: string[];
  withinS: number | null;
  mayArriveTwice: boolean;
}

export interface ActionPlanStepPage {
  items: ActionPlanStep[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface ActionRoute {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  actionPlanId: number;
  stepOrder: number;
  recipientProfileId: number;
  channelType: string | null;
  enabled: boolean;
}

export interface ActionRoutePage {
  items: ActionRoute[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export type ActionStatus = "RUNNING" | "DONE" | "FAILED" | "CANCELLED";

export interface ActionStep {
  stepOrder: number;
  channelType: string;
  state: StepState;
  errorCode: string | null;
  askedAt: string | null;
  notifications: StepMessage[];
}

/** FCM is replacing registration tokens by Firebase installation ids; both are in use. WEB_PUSH is the subscription of a browser. */
export type AddressKind = "TOKEN" | "FID" | "WEB_PUSH";

export interface Alive {
  status?: "ok";
}

export interface Approved {
  kinds: string[];
}

export interface Artifact {
  name: string;
  /** In bytes. */
  size: number;
}

export interface AssignBody {
  studentId: number;
}

export interface Attempt {
  attempt: number;
  deviceId: string | null;
  outcome: Outcome;
  errorCode: string | null;
  providerMessageId: string | null;
  at: string;
}

/** The recipients of a step. */
export type Audience = "PERSON" | "ROUTES";

export interface AuditEntry {
  id: number;
  /** `user:` and the id of the coordinator or admin, `operator` for a command, or `service`. Null for entries from before authors were written. */
  author: string | null;
  notificationId: string;
  recipient: string;
  subject: string;
  body: string;
  /** JSON as text, exactly the characters that are hashed. */
  metadata: string;
  writtenAt: string;
  /** SHA-256 in hexadecimal. */
  previousHash: string;
  /** SHA-256 in hexadecimal. */
  hash: string;
}

export interface AuditEntryPage {
  items: AuditEntry[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface AvailabilityBody {
  onDuty: boolean;
}

export interface BothWaiting {
  /** From the press until a student accepted. */
  accept: Waiting;
  /** From the press until the student was there. */
  arrive: Waiting;
}

export interface Breaker {
  name: string;
  state: BreakerState;
}

export type BreakerState = "closed" | "open" | "half_open";

export interface Candidate {
  studentId: number;
  name: string;
  phone: string | null;
  /** Null if no place is known. */
  distanceM: number | null;
  completedThisMonth: number;
  onDuty: boolean;
  /** Why the search would not ask this student. `HAS_A_TASK` also refuses to be assigned by hand. */
  obstacle: NotAskedBecause | null;
  /** The state of this task's offer to the student. */
  askedBefore: OfferState | null;
}

export interface Candidates {
  items: Candidate[];
}

/** Besides these members, it has those of the kind. All of them are null if it was removed. */
export interface Change {
  identifier: string;
  changeType: "added" | "modified" | "removed";
  /** Service time; `einvoice` and `edespatch` show it without an offset. */
  changedAt: string;
  aliases: (Record<string, string | null>)[] | null;
  [name: string]: unknown;
}

export interface Changes {
  changes: Change[];
  /** Of all pages. */
  totalCount: number;
  page: number;
  pageSize: number;
  totalPages: number;
  /** Use it as the next `since`, after the last page. */
  until: string;
  /** Use it as the next `cursor`, also if there are no changes. */
  nextCursor: string;
}

/** Absent fields stay as they are. A new target has to be verified again, and its headers have to be given again. */
export interface ChannelChangesBody {
  /** A phone number, an e-mail address, a URL, a token or `user:7`. */
  target?: string;
  /** At most 8 KB: the platform of a token, headers of a webhook. */
  targetMeta?: Record<string, unknown>;
  enabled?: boolean;
}

export interface Checks {
  database: Health;
  migrations: Health;
  redis: Health;
  /** `failed`: tasks are overdue and no matcher has handled them. */
  matcher: Health;
}

export interface Consumer {
  id: number;
  kind: string;
  name: string;
  scope: ConsumerScope;
  createdAt: string;
  /** To the minute. */
  usedAt: string | null;
  revokedAt: string | null;
}

export interface ConsumerPage {
  items: Consumer[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

/** What the holder of a token may do with its kind. */
export type ConsumerScope = "READ" | "PUSH";

export interface CurrentOffer {
  deadline: string;
  /** For coordinators only. */
  studentId?: number | null;
  /** For coordinators; the elder gets the first word; absent for students. */
  studentName?: string | null;
}

export interface DayOfAnswers {
  day: string;
  asked: number;
  accepted: number;
  rejected: number;
  expired: number;
}

export interface DayOfWaiting {
  day: string;
  count: number;
  p50S: number | null;
  p90S: number | null;
}

export interface DeadLetter {
  id: string;
  status: DeadLetterStatus;
  actionPlanId: number | null;
  stepOrder: number | null;
  channelType: string;
  errorCode: string;
  errorMessage: string;
  retryable: boolean;
  retryCount: number;
  failedAt: string;
  notificationId: string | null;
  actionId: string | null;
  traceId: string | null;
  closedAt: string | null;
  /** The user who redrove or discarded it; null for an operator's command. */
  closedBy: number | null;
}

export interface DeadLetterPage {
  items: DeadLetter[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export type DeadLetterStatus = "OPEN" | "REDRIVEN" | "COVERED" | "DISCARDED" | "EXPIRED";

export interface DemoPeople {
  items: DemoPerson[];
}

export interface DemoPerson {
  id: number;
  role: Role;
  name: string;
  institutionId: number | null;
  /** From Ayşe's home; null for coordinators and admins. */
  distanceM: number | null;
  /** True if `demo --live` does nothing in the name of this person. */
  reserved: boolean;
}

export interface DemoSignInBody {
  userId: number;
}

export interface DemoToken {
  token: string;
  expiresAt: string;
}

export interface DeviceBody {
  token: string;
  platform: Platform;
  addressKind?: AddressKind;
}

export interface Discarded {
  discarded: number;
  /** Dead letters that match and are left for the next call. */
  remaining: number;
}

export interface Elder {
  id: number;
  name: string;
  phone: string | null;
}

/** The data of one event. Fields that are empty, or that the caller may not see, are absent. */
export interface Event {
  /** Send the last one as `Last-Event-ID` to resume. */
  id?: number | null;
  type: EventType | "READY" | "TIME" | "END";
  at?: string | null;
  taskId?: string | null;
  /** Of the task, when this happened. */
  status?: TaskStatus | null;
  /** Like the next two, as it is when it is sent. */
  asked?: number | null;
  remaining?: number | null;
  nextStepAt?: string | null;
  /** Of the offer that was made. */
  deadline?: string | null;
  studentId?: number | null;
  /** For the elder the first word. */
  studentName?: string | null;
  /** For coordinators, like the next two. */
  elderId?: number | null;
  elderName?: string | null;
  onDuty?: boolean | null;
  messageId?: number | null;
  /** Why a student was skipped or an offer withdrawn; of END, one of TOKEN_EXPIRED, DEACTIVATED, DRAINING, SLOW, RESTORED. */
  reason?: string | null;
}

export type EventType = "TASK_CREATED" | "TASK_OFFERED" | "TASK_REOFFERED" | "OFFER_REJECTED" | "OFFER_EXPIRED" | "OFFER_WITHDRAWN" | "STUDENT_SKIPPED" | "TASK_ASSIGNED" | "TASK_STARTED" | "TASK_COMPLETED" | "TASK_RELEASED" | "TASK_CANCELLED" | "TASK_TIMED_OUT" | "TASK_RESOLVED" | "DUTY_CHANGED" | "MESSAGE_ARRIVED";

export interface Figures {
  month: string;
  computedAt: string;
  tasks: TasksOfMonth;
  /** By the day of the press. */
  toAccept: DayOfWaiting[];
  waiting: BothWaiting;
  /** Tasks that nobody took, by cells of the map of about 0.9 by 0.6 km; the place is a cell's middle. */
  unmet: Unmet[];
  /** Students by tasks completed in the month; 0: on duty now. */
  load: Load[];
  /** Offers, by the day on which they were made. */
  silence: DayOfAnswers[];
}

export type Health = "ok" | "failed";

export interface HealthOfParts {
  /** `degraded`: Redis does not answer, or the matchers are late; presses and answers still work. */
  status: "ready" | "degraded" | "unready";
  checks: Checks;
  parts: Part[];
  /** Of providers; empty while Redis does not answer. */
  breakers: Breaker[];
  /** Notifications that are not ended. */
  backlog: number;
  /** Those that I see. */
  openDeadLetters: number;
}

export interface Job {
  id: string;
  name: string;
  params: Record<string, unknown>;
  taskType: TaskType;
  status: JobStatus;
  origin: JobOrigin;
  requestedBy: number | null;
  scheduleName: string | null;
  scheduledFor: string | null;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  cancelRequestedAt: string | null;
  progress: JobProgress | null;
  error: string | null;
}

export interface JobInFull {
  id: string;
  name: string;
  params: Record<string, unknown>;
  taskType: TaskType;
  status: JobStatus;
  origin: JobOrigin;
  requestedBy: number | null;
  scheduleName: string | null;
  scheduledFor: string | null;
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  cancelRequestedAt: string | null;
  progress: JobProgress | null;
  error: string | null;
  result: unknown;
  /** The end of what the script printed, at most 64 KB. */
  output: string;
  /** How often a process has begun it; above 1 if processes died. */
  claims: number;
  tries: number;
  maxRetries: number;
  timeoutS: number | null;
  artifacts: Artifact[];
}

export type JobOrigin = "HTTP" | "CLI" | "SCHEDULE";

export interface JobPage {
  items: Job[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface JobProgress {
  done: number;
  total: number | null;
  note: string;
}

export type JobStatus = "QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED";

export interface KeptList {
  sha256: string;
  /** In bytes. */
  size: number;
}

export interface ListedElder {
  id: number;
  name: string;
  phone: string | null;
  location: Place | null;
  openTaskId: string | null;
}

export interface ListedElderPage {
  items: ListedElder[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface ListedStudent {
  id: number;
  name: string;
  phone: string | null;
  onDuty: boolean;
  active: boolean;
  /** Off duty until a coordinator says otherwise. */
  suspended: boolean;
  /** Has a task, or is being asked. */
  busy: boolean;
  completedThisMonth: number;
  location: Place | null;
}

export interface ListedStudentPage {
  items: ListedStudent[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface Load {
  completed: number;
  students: number;
}

export interface Me {
  id: number;
  role: Role;
  name: string;
  locale: "tr" | "en";
  /** Null if the caller is not a student. */
  onDuty: boolean | null;
  openTask: Task | null;
  offer: MyOffer | null;
  institutionId: number | null;
  /** The phone number of a person, for whoever gets no further. */
  helpline: string | null;
  /** By the database's clock, which decides deadlines. */
  serverTime: string;
}

export interface MeantBody {
  channelType?: string | null;
  errorCode?: string | null;
  actionPlanId?: number | null;
  /** Failed at this time or later. */
  since?: string | null;
  /** Failed before this time. */
  until?: string | null;
  /** Must be true if no filter is given. */
  all?: boolean | null;
}

export interface Message {
  id: number;
  notificationId: string;
  subject: string;
  body: string;
  data: Record<string, unknown>;
  createdAt: string;
  readAt: string | null;
}

export interface MessagePage {
  items: Message[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface MyOffer {
  taskId: string;
  deadline: string;
  /** In steps of 100, rounded up, between cells of the map. */
  distanceM: number;
  elderName: string;
  note: string | null;
}

export interface NewActionBody {
  /** The plan to carry out. Give either this or `planKey`. */
  actionPlanId?: number | null;
  planKey?: string | null;
  /** Requests of one caller with the same key are carried out only once. */
  evaluationKey: string;
  /** The user that steps for PERSON go to. */
  personId?: number | null;
  /** Values for the templates; at most 16,384 bytes. */
  variables?: Record<string, unknown> | null;
  deviceId?: string | null;
  streamId?: number | null;
  groupId?: number | null;
  ruleId?: number | null;
  /** Generated if absent. */
  traceId?: string | null;
  /** NORMAL if absent. */
  priority?: Priority | null;
  /** No step begins after this time. */
  expiresAt?: string | null;
}

export interface NewChannelBody {
  profileId: number;
  channelType: "email" | "sms" | "push" | "in_app" | "webhook" | "whatsapp" | "audit";
  /** A phone number, an e-mail address, a URL, a token or `user:7`. */
  target: string;
  /** At most 8 KB: the platform of a token, headers of a webhook. */
  targetMeta?: Record<string, unknown>;
  enabled?: boolean;
}

export interface NewConsumer {
  consumer: Consumer;
  /** Shown only here. */
  token: string;
}

export interface NewConsumerBody {
  kind: string;
  name: string;
  scope?: ConsumerScope;
}

export interface NewJobBody {
  name: string;
  /** As the catalogue describes them. */
  params?: Record<string, unknown>;
  /** The script's own if absent. */
  maxRetries?: number | null;
  /** Longest time of one try; the script's own if absent. */
  timeoutS?: number | null;
}

export interface NewNotificationBody {
  notificationType: NotificationType;
  /** Depends on the type: an e-mail address, a phone number, a URL, `user:7` or a device token. */
  recipient: string;
  /** Subject of an e-mail, or title of a push. */
  subject?: string | null;
  body: string;
  /** NORMAL if absent. */
  priority?: Priority | null;
  /** At most 8,192 bytes. `data`, an object of strings, is sent to an app together with the text; `addressKind`, TOKEN or FID, is the kind of device token in `recipient`. */
  metadata?: Record<string, unknown> | null;
  /** The notification is not sent after this time. */
  expiresAt?: string | null;
}

export interface NewPlanBody {
  name: string;
  description?: string;
  status?: boolean;
}

export interface NewProfileBody {
  name: string;
  /** Actions about this device may go to this profile. */
  deviceId?: string | null;
  userId?: number | null;
  /** Its coordinators keep the profile. A coordinator's own institution, unless `userId` is given. */
  institutionId?: number | null;
  locale?: "tr" | "en";
  status?: boolean;
  /** Lower is tried first. */
  priority?: number;
}

export interface NewRecipientChannel {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  profileId: number;
  channelType: string;
  target: string;
  /** Values of `headers` are never shown. Sending them back as shown does not change them. */
  targetMeta: Record<string, unknown>;
  enabled: boolean;
  verifyStatus: VerifyStatus;
  /** For webhooks: the secret that signs requests. Shown in this answer only. */
  secret?: string | null;
}

export interface NewRouteBody {
  actionPlanId: number;
  stepOrder: number;
  recipientProfileId: number;
  /** Replaces the channel type of the step. */
  channelType?: string | null;
  enabled?: boolean;
}

export interface NewStepBody {
  stepOrder: number;
  /** A channel type, or a type in `ACTION_HANDOVER_TYPES`. */
  channelType: string;
  audience?: Audience;
  /** Without a template, an app gets only data. */
  templateKey?: string | null;
  onFailure?: OnFailure;
  /** Channel types of the same recipient to try next, in this order. */
  fallback?: string[];
  /** Seconds after which the fallback is tried if nothing was delivered; after the last fallback, the next step begins if `onFailure` is CONTINUE. Without it, 60 s, and only if the message waits for a provider that fails too often. */
  withinS?: number | null;
  /** If the answers of the provider were lost, the message may have arrived. True: the fallback follows all the same, so that the person may get the message twice. False: it does not. */
  mayArriveTwice?: boolean;
}

export interface NewTaskBody {
  note?: string | null;
  /** Where help is wanted; the elder's home if absent. */
  location?: Point | null;
  /** Required if a coordinator calls for an elder. */
  elderId?: number | null;
}

export interface NewTemplateBody {
  key: string;
  locale?: "tr" | "en";
  subject?: string;
  body: string;
}

export interface NewUserBody {
  role: Role;
  name: string;
  phone?: string | null;
  locale?: "tr" | "en";
  /** An elder's home, or a student's location. */
  location?: Point | null;
  institutionId?: number | null;
  firebaseUid?: string | null;
  active?: boolean;
}

/** Why the cascade would not ask a student now: an obstacle, or an offer that was made before. The first one in this order is the reason. */
export type NotAskedBecause = "INACTIVE" | "OFF_DUTY" | "NO_LOCATION" | "HAS_A_TASK" | "TOO_FAR" | "ASKED_BEFORE" | "LEFT_IN_PEACE" | "BEING_ASKED";

/** The body of a call without fields: empty or `{}`. */
export interface Nothing {
}

export interface Notification {
  id: string;
  notificationType: NotificationType;
  recipient: string;
  recipientUserId: number | null;
  subject: string;
  body: string;
  priority: Priority;
  status: NotificationStatus;
  metadata: Record<string, unknown>;
  taskId: string | null;
  createdAt: string;
  expiresAt: string | null;
  finishedAt: string | null;
  errorCode: string | null;
}

export interface NotificationInFull {
  id: string;
  notificationType: NotificationType;
  recipient: string;
  recipientUserId: number | null;
  subject: string;
  body: string;
  priority: Priority;
  status: NotificationStatus;
  metadata: Record<string, unknown>;
  taskId: string | null;
  createdAt: string;
  expiresAt: string | null;
  finishedAt: string | null;
  errorCode: string | null;
  attempts: Attempt[];
}

export interface NotificationPage {
  items: Notification[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export type NotificationStatus = "ACCEPTED" | "SENDING" | "RETRYING" | "SENT" | "DEAD" | "EXPIRED" | "CANCELLED";

/** The kind of channel that sends a notification. */
export type NotificationType = "EMAIL" | "SMS" | "PUSH" | "IN_APP" | "WEBHOOK" | "WHATSAPP" | "AUDIT";

export interface Offer {
  studentId: number;
  studentName: string;
  rank: number | null;
  completedThisMonth: number;
  distanceM: number | null;
  state: OfferState;
  /** Why the student was skipped or the offer was taken back, or that a coordinator has made it. */
  reason: OfferReason | null;
  offeredAt: string | null;
  deadline: string | null;
  /** When the offer ended, or the student was skipped. */
  closedAt: string | null;
}

/** What an offer says beside its state: why the student was skipped, why the offer was taken back, or that a coordinator has made it. */
export type OfferReason = "INACTIVE" | "OFF_DUTY" | "NO_LOCATION" | "HAS_A_TASK" | "TOO_FAR" | "ACCEPTED_BY_ANOTHER" | "ASSIGNED_BY_HAND" | "CANCELLED" | "MOVED_ON";

export type OfferState = "PENDING" | "ACCEPTED" | "REJECTED" | "EXPIRED" | "WITHDRAWN" | "RELEASED" | "SKIPPED";

export interface Offers {
  items: Offer[];
}

export type OnFailure = "STOP" | "CONTINUE";

export type Origin = "INTERNAL" | "HTTP" | "STREAM";

/** The result of sending to one address. */
export type Outcome = "SENT" | "TRANSIENT" | "PERMANENT" | "RECIPIENT_GONE" | "UNKNOWN";

export interface OutcomeBody {
  outcome: TaskOutcome;
  note?: string | null;
}

export interface PageSettings {
  /** True if `POST /demo/sign-in` gives out tokens. */
  demoSignIn: boolean;
  /** Where people sign in who do not use the demo. */
  signInPage: string | null;
  /** Address of map tiles, with `{z}`, `{x}` and `{y}`; null for no tiles. */
  tileAddress: string | null;
  /** Whom the map names as the source of its tiles; plain text. */
  tileAttribution: string | null;
  /** The `applicationServerKey` of pushes to browsers; null if they get none. */
  vapidPublicKey: string | null;
  /** The phone number of a person, for whoever gets no further. */
  helpline: string | null;
  /** The language before somebody has signed in or chosen one. */
  locale: "tr" | "en";
}

export interface Part {
  name: string;
  status: PartStatus;
  detail: string;
}

export type PartStatus = "ok" | "late" | "down";

export interface Place {
  lat: number;
  lon: number;
}

/** Absent fields stay as they are. */
export interface PlanChangesBody {
  name?: string;
  description?: string;
  status?: boolean;
}

export type Platform = "ANDROID" | "IOS" | "WEB";

export interface Point {
  lat: number;
  lon: number;
}

export interface PreviewBody {
  variables?: Record<string, unknown>;
}

export type Priority = "LOW" | "NORMAL" | "HIGH" | "URGENT";

/** An error in the form of RFC 9457. Rely on `code`; the texts may change. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  /** For invalid input: one item for each field. */
  errors?: ({
    field: string;
    message: string;
    code: "required" | "unknown_field" | "wrong_type" | "wrong_form" | "too_long" | "too_short" | "out_of_range" | "not_a_choice" | "given_twice" | "invalid";
  })[];
}

/** Absent fields stay as they are; null empties a field that may be empty. */
export interface ProfileChangesBody {
  name?: string;
  deviceId?: string | null;
  userId?: number | null;
  institutionId?: number | null;
  locale?: "tr" | "en";
  status?: boolean;
  priority?: number;
}

export interface Ready {
  /** `degraded`: Redis does not answer, or the matchers are late; presses and answers still work. */
  status: "ready" | "degraded" | "unready";
  checks: Checks;
}

export interface RecipientChannel {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  profileId: number;
  channelType: string;
  target: string;
  /** Values of `headers` are never shown. Sending them back as shown does not change them. */
  targetMeta: Record<string, unknown>;
  enabled: boolean;
  verifyStatus: VerifyStatus;
}

export interface RecipientChannelPage {
  items: RecipientChannel[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface RecipientProfile {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  /** Only for profiles that are shipped with the product. */
  key: string | null;
  deviceId: string | null;
  userId: number | null;
  institutionId: number | null;
  name: string;
  locale: "tr" | "en";
  status: boolean;
  priority: number;
}

export interface RecipientProfilePage {
  items: RecipientProfile[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface RecordedPush {
  id: number;
  notificationId: string;
  title: string | null;
  body: string | null;
  data: Record<string, unknown>;
  recordedAt: string;
}

export interface RecordedPushPage {
  items: RecordedPush[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface Redriven {
  redriven: number;
  /** Open dead letters that match but cannot be redriven. */
  skipped: number;
  /** Dead letters that match and are left for the next call. */
  remaining: number;
}

export type Role = "ELDER" | "STUDENT" | "COORDINATOR" | "ADMIN";

export interface RosterRun {
  id: number;
  status: RunStatus;
  startedAt: string;
  finishedAt: string;
  /** By kind, what was added, modified, removed or held back; by list, what was read and left out. */
  report: Record<string, unknown>;
}

export interface RosterRunPage {
  items: RosterRun[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

/** Absent fields stay as they are; null empties a field that may be empty. */
export interface RouteChangesBody {
  recipientProfileId?: number;
  channelType?: string | null;
  enabled?: boolean;
}

export type RunStatus = "SUCCEEDED" | "PARTIAL" | "FAILED";

export interface SaidOutcome {
  outcome: TaskOutcome;
  note: string | null;
  /** The id of the coordinator or admin. */
  saidBy: number;
  saidAt: string;
}

export interface Script {
  name: string;
  isShipped: boolean;
  /** Why the script cannot be used; null if it can. */
  error: string | null;
  summary: string | null;
  description: string | null;
  taskType: TaskType | null;
  maxRetries: number | null;
  /** Null leaves it to the setting JOBS_TIMEOUT_S. */
  timeoutS: number | null;
  /** JSON schema of `params`. */
  parameters: Record<string, unknown> | null;
}

export interface Scripts {
  items: Script[];
}

export interface Secret {
  /** Shown in this answer only. */
  secret: string;
}

/** Absent fields stay as they are; null empties a field that may be empty. */
export interface StepChangesBody {
  stepOrder?: number;
  /** A channel type, or a type in `ACTION_HANDOVER_TYPES`. */
  channelType?: string;
  audience?: Audience;
  templateKey?: string | null;
  onFailure?: OnFailure;
  /** Channel types of the same recipient to try next, in this order. */
  fallback?: string[];
  /** Seconds after which the fallback is tried if nothing was delivered; after the last fallback, the next step begins if `onFailure` is CONTINUE. Without it, 60 s, and only if the message waits for a provider that fails too often. */
  withinS?: number | null;
  /** If the answers of the provider were lost, the message may have arrived. True: the fallback follows all the same, so that the person may get the message twice. False: it does not. */
  mayArriveTwice?: boolean;
}

export interface StepMessage {
  id: string;
  notificationType: NotificationType;
  recipient: string;
  recipientUserId: number | null;
  status: NotificationStatus;
  createdAt: string;
  finishedAt: string | null;
  errorCode: string | null;
}

export type StepState = "WAITING" | "RUNNING" | "SENT" | "FAILED" | "SKIPPED" | "HANDED_OVER" | "CANCELLED";

export interface Student {
  id: number;
  name: string;
  phone: string | null;
}

export interface StudentMap {
  students: StudentOnMap[];
  /** There are more students in this part of the map. */
  truncated: boolean;
}

export interface StudentOnMap {
  id: number;
  name: string;
  lat: number;
  lon: number;
  onDuty: boolean;
  /** Has a task, or is being asked. */
  busy: boolean;
  /** The task for which the student is being asked, if I see it. */
  offeredTaskId: string | null;
}

export interface Submitted {
  id: string;
  status?: "ACCEPTED";
  message?: string;
  submittedAt: string;
}

export interface Task {
  id: string;
  status: TaskStatus;
  createdAt: string;
  note: string | null;
  asked: number;
  remaining: number;
  nextStepAt: string | null;
  location: Place | null;
  elder: Elder;
  student: Student | null;
  currentOffer: CurrentOffer | null;
  /** What became of a task that nobody took. For coordinators only. */
  outcome?: SaidOutcome | null;
  /** For coordinators only; absent until it happens, and for others. */
  assignedAt?: string | null;
  /** For coordinators only; absent until it happens, and for others. */
  startedAt?: string | null;
  /** For coordinators only; absent until it happens, and for others. */
  endedAt?: string | null;
  /** No student is asked after this; absent after the search, and for others. */
  searchEndsAt?: string | null;
}

/** What became of a task that nobody took, as a coordinator says. It is no state: the task stays TIMED_OUT. */
export type TaskOutcome = "HELPED_BY_PHONE" | "HELPED_BY_OTHERS" | "NOT_NEEDED" | "NOT_REACHED" | "OTHER";

export interface TaskPage {
  items: Task[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export type TaskStatus = "PENDING" | "ASSIGNED" | "STARTED" | "COMPLETED" | "TIMED_OUT" | "CANCELLED";

export type TaskType = "io_bound" | "cpu_bound";

export interface TasksOfMonth {
  created: number;
  completed: number;
  timedOut: number;
  cancelled: number;
}

export interface Template {
  id: number;
  createdAt: string;
  updatedAt: string;
  retiredAt: string | null;
  key: string;
  locale: "tr" | "en";
  subject: string;
  body: string;
}

/** Absent fields stay as they are. */
export interface TemplateChangesBody {
  subject?: string;
  body?: string;
}

export interface TemplatePage {
  items: Template[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface Unmet {
  lat: number;
  lon: number;
  count: number;
}

export interface User {
  id: number;
  role: Role;
  name: string;
  phone: string | null;
  locale: "tr" | "en";
  location: Place | null;
  institutionId: number | null;
  firebaseUid: string | null;
  active: boolean;
  onDuty: boolean | null;
  createdAt: string;
}

/** Absent fields stay as they are; null empties a field that may be empty. */
export interface UserChangesBody {
  name?: string;
  phone?: string | null;
  locale?: "tr" | "en";
  location?: Point | null;
  institutionId?: number | null;
  firebaseUid?: string | null;
  active?: boolean;
}

export interface UserPage {
  items: User[];
  /** Send it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

export interface VerificationBody {
  code: string;
}

export interface VerificationStarted {
  notificationId: string;
  expiresAt: string;
}

export type VerifyStatus = "pending" | "verified" | "failed";

export interface Waiting {
  tasks: number;
  meanS: number | null;
  p50S: number | null;
  p90S: number | null;
  p95S: number | null;
  p99S: number | null;
}

export interface Words {
  subject: string;
  body: string;
}
