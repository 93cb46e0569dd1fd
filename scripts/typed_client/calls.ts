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
