/** The client of Lamina: every route of its API by path, typed by the service's OpenAPI document. */

import createClient, { type MaybeOptionalInit } from "openapi-fetch";
import type { PathsWithMethod, RequiredKeysOf } from "openapi-typescript-helpers";
import { ROUTES } from "./routes.js";
import type { components, paths } from "./schema.js";

export type { components, paths };
/** The models of requests and answers by name, as in `Schemas["NoteOut"]`. */
export type Schemas = components["schemas"];

export type Verb = "get" | "post" | "put" | "patch" | "delete";
export type Route<V extends Verb> = PathsWithMethod<paths, V>;
type Call<V extends Verb, P extends Route<V>> = paths[P] extends Record<V, infer C> ? C : never;
type Content<R> = R extends { content: { "application/json": infer Body } } ? Body : undefined;
/** The answer of a route; `undefined` where it has no content. */
export type Answer<V extends Verb, P extends Route<V>> =
  Call<V, P> extends { responses: infer R } ? Content<R[keyof R & (200 | 201 | 202 | 204)]> : never;
type FormBody<V extends Verb, P extends Route<V>> =
  Call<V, P> extends { requestBody: { content: { "multipart/form-data": infer Body } } } ? Body : never;
/** A form as it is sent, or its fields; of a `File` the name goes along. */
export type Form<Body> = FormData | (Omit<Body, "file"> & { file: Blob });
export type Request<V extends Verb, P extends Route<V>> = [FormBody<V, P>] extends [never]
  ? MaybeOptionalInit<paths[P], V>
  : Omit<NonNullable<MaybeOptionalInit<paths[P], V>>, "body"> & { body: Form<FormBody<V, P>> };
type Arguments<V extends Verb, P extends Route<V>> =
  RequiredKeysOf<Request<V, P>> extends never ? [request?: Request<V, P>] : [request: Request<V, P>];
/** The items of a list's page. */
export type Item<P extends Route<"get">> = {
  [K in keyof Answer<"get", P>]: Answer<"get", P>[K] extends (infer I)[] ? I : never;
}[keyof Answer<"get", P>];

export interface Scope {
  workspace?: string;
  namespace?: string;
  user?: string;
  agent?: string;
  session?: string;
  swarm?: string;
}

export interface Options {
  /** Where Lamina listens; `LAMINA_URL`, then http://127.0.0.1:8000. */
  url?: string;
  /** API key; `LAMINA_API_KEY`. */
  key?: string;
  /** Ids sent with every request that takes them; one that a request names wins. */
  scope?: Scope;
  /** Longest wait for an answer, and longest pause before a call is repeated. 60 000. */
  timeoutMs?: number;
  /** Further tries of a call that was refused for now, or did not reach the service. 4. */
  retries?: number;
  fetch?: (request: globalThis.Request) => Promise<Response>;
}

/** An answer that is an error, or none at all: then its status is 0, and its cause is why. */
export class LaminaError extends Error {
  override readonly name = "LaminaError";

  constructor(
    /** HTTP status. */
    readonly status: number,
    message: string,
    /** The problem as the service describes it (RFC 9457). */
    readonly problem: Partial<Schemas["ProblemOut"]> = {},
    /** Seconds after which a repetition makes sense. */
    readonly retryAfter: number | undefined = undefined,
    options: ErrorOptions = {},
  ) {
    super(message, options);
  }
}

/** The pause before a path is asked for again that a proxy has no route for yet. */
const ROUTE_PAUSE_MS = 500;
/** Parts of the refusal of a call that had not begun. */
const NOT_BEGUN: readonly unknown[] = ["turn", "search"];
const environment: Record<string, string | undefined> = globalThis.process?.env ?? {};

export class Lamina {
  readonly #http;
  readonly #scope: Scope;

  constructor({ url, key, scope = {}, timeoutMs = 60_000, retries = 4, fetch = globalThis.fetch }: Options = {}) {
    const secret = key ?? environment["LAMINA_API_KEY"];
    this.#scope = scope;
    this.#http = createClient<paths>({
      baseUrl: url || environment["LAMINA_URL"] || "http://127.0.0.1:8000",
      headers: secret ? { Authorization: `Bearer ${secret}` } : {},
      redirect: "manual", // Not followed: a body would be lost, or the key go to another address.
      pathSerializer: fillPath,
      fetch: (request) => sendPatiently(request, fetch, timeoutMs, retries),
    });
  }

  get<P extends Route<"get">>(path: P, ...[request]: Arguments<"get", P>): Promise<Answer<"get", P>> {
    return this.#call("get", path, request);
  }

  post<P extends Route<"post">>(path: P, ...[request]: Arguments<"post", P>): Promise<Answer<"post", P>> {
    return this.#call("post", path, request);
  }

  put<P extends Route<"put">>(path: P, ...[request]: Arguments<"put", P>): Promise<Answer<"put", P>> {
    return this.#call("put", path, request);
  }

  patch<P extends Route<"patch">>(path: P, ...[request]: Arguments<"patch", P>): Promise<Answer<"patch", P>> {
    return this.#call("patch", path, request);
  }

  delete<P extends Route<"delete">>(path: P, ...[request]: Arguments<"delete", P>): Promise<Answer<"delete", P>> {
    return this.#call("delete", path, request);
  }

  /** Go through all pages of a list; `limit` is the size of a page. */
  async *each<P extends Route<"get">>(path: P, ...[request]: Arguments<"get", P>): AsyncGenerator<Item<P>> {
    const { items } = ROUTES[`GET ${path}`] ?? {};
    if (items === undefined) throw new TypeError(`${path} is no list; use get`);
    let query: Query | undefined = { ...(request as Loose | undefined)?.params?.query };
    while (query !== undefined) {
      const given = (request ?? {}) as Loose;
      const page = (await this.#call("get", path, { ...given, params: { ...given.params, query } })) as Page;
      yield* page[items] as Item<P>[];
      query = following(page, query);
    }
  }

  async #call<V extends Verb, P extends Route<V>>(verb: V, path: P, request: unknown): Promise<Answer<V, P>> {
    const send = this.#http.request as unknown as (verb: V, path: P, request: Loose) => Promise<Sent>;
    const given = this.#inScope(verb, path, request as Loose);
    try {
      const { data, error, response } = await send(verb, path, { parseAs: "text", ...given });
      if (!response.ok) throw refused(response, error);
      return (given.parseAs === undefined ? jsonOf(response, data) : data) as Answer<V, P>;
    } catch (error) {
      throw failed(error);
    }
  }

  #inScope(verb: Verb, path: string, request: Loose = {}): Loose {
    const { body = [], query = [] } = ROUTES[`${verb.toUpperCase()} ${path}`] ?? {};
    const own = (names: readonly string[]) => Object.entries(this.#scope).filter(([name]) => names.includes(name));
    const params = { ...request.params, query: { ...Object.fromEntries(own(query)), ...request.params?.query } };
    if (body.length === 0) return { ...request, params };
    const ids = Object.fromEntries(own(body));
    const given = request.body ?? {};
    const isForm = given instanceof FormData || Object.values(given).some((value) => value instanceof Blob);
    return { ...request, params, body: isForm ? formOf(ids, given) : { ...ids, ...given } };
  }
}

type Query = Record<string, unknown>;
type Page = Record<string, unknown>;
type Sent = { data?: unknown; error?: unknown; response: Response };
type Loose = {
  params?: { path?: Query; query?: Query; header?: Query };
  body?: Query | FormData;
  parseAs?: string;
};

/** Return a form with the ids of a scope that it does not name itself. */
function formOf(ids: Query, given: Query | FormData): FormData {
  const fields: [string, unknown][] = given instanceof FormData ? [...given.entries()] : Object.entries(given);
  const names = new Set(fields.map(([name]) => name));
  const form = new FormData();
  for (const [name, value] of [...Object.entries(ids).filter(([id]) => !names.has(id)), ...fields]) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one instanceof Blob) form.append(name, one);
      else if (one != null) form.append(name, String(one));
    }
  }
  return form;
}

/** Return the query for the page after one; `undefined` after the last. */
function following(page: Page, { offset, after, cursor, ...query }: Query): Query | undefined {
  if (page["next_cursor"] != null) return { ...query, cursor: page["next_cursor"] };
  // Of events, whose next place is there before the next event is.
  return page["more"] && page["next"] != null ? { ...query, after: page["next"] } : undefined;
}

function fillPath(pathname: string, ids: Record<string, unknown>): string {
  return pathname.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parts = name === "path" ? String(ids[name] ?? "").split("/") : [String(ids[name] ?? "")];
    // An address with one of these would lead to another route.
    if (parts.some((part) => part === "" || part === "." || part === "..")) {
      throw new LaminaError(0, `${name}: is empty, or has a part that is . or ..; no address can hold it`);
    }
    return parts.map(encodeURIComponent).join("/");
  });
}

async function sendPatiently(
  request: globalThis.Request,
  fetch: (request: globalThis.Request) => Promise<Response>,
  timeoutMs: number,
  retries: number,
): Promise<Response> {
  let mayHaveBegun = false;
  for (let attempt = 0; ; attempt++) {
    const { response, error } = await attemptOnce(request.clone(), fetch, timeoutMs);
    if (response !== undefined) {
      // Its first time did it.
      const isGone = response.status === 404 && !isUnrouted(response);
      if (mayHaveBegun && request.method === "DELETE" && isGone) return new Response(null, { status: 204 });
      mayHaveBegun ||= response.status === 503;
    }
    const pauseMs =
      attempt >= retries ? undefined : response ? await pauseOf(request, response) : pauseAfter(error, attempt);
    if (pauseMs === undefined || pauseMs > timeoutMs) {
      if (response !== undefined) return response;
      throw new LaminaError(0, `${request.url} does not answer; start it with \`lamina up\``, {}, 1, { cause: error });
    }
    await response?.body?.cancel();
    // Those that were refused together do not come back together.
    await pause(pauseMs * (1 + Math.random() / 2), request.signal);
  }
}

/** Return the answer, or why there is none. */
async function attemptOnce(
  request: globalThis.Request,
  fetch: (request: globalThis.Request) => Promise<Response>,
  timeoutMs: number,
): Promise<{ response?: Response; error?: unknown }> {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  let error: unknown;
  try {
    if (!request.signal.aborted) return { response: await fetch(new Request(request, { signal })) };
  } catch (caught) {
    error = caught;
  }
  if (!request.signal.aborted) return { error };
  throw new LaminaError(0, "the call was aborted", {}, undefined, { cause: request.signal.reason });
}

/** Wait, until the caller gives up at the latest. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
  });
}

/** Report whether a proxy has no route for the path yet: then no replica has seen the request. */
function isUnrouted(sent: Response): boolean {
  return sent.status === 404 && !(sent.headers.get("Content-Type") ?? "").includes("json");
}

/** Return the milliseconds after which to repeat a call without an answer; `undefined` if it may have been sent. */
function pauseAfter(error: unknown, attempt: number): number | undefined {
  const { code } = ((error as Error | undefined)?.cause ?? {}) as { code?: string };
  return code === "ECONNREFUSED" ? 250 * 2 ** attempt : undefined;
}

/** Return the milliseconds after which to repeat a call; `undefined` if its answer stands. */
async function pauseOf(request: globalThis.Request, sent: Response): Promise<number | undefined> {
  if (isUnrouted(sent)) return ROUTE_PAUSE_MS;
  const after = sent.headers.get("Retry-After");
  if (sent.status === 429) return after === null ? undefined : 1000 * secondsOf(after);
  if (sent.status !== 503 || after === null) return undefined;
  const hadNotBegun = NOT_BEGUN.includes((await problemOf(sent.clone())).fields?.["part"]);
  return isRepeatable(request) || hadNotBegun ? 1000 * secondsOf(after) : undefined;
}

/** Return whether a call that is sent twice does no more than sent once, and its answer stays the same. */
function isRepeatable({ method, headers, url }: globalThis.Request): boolean {
  if (headers.has("Idempotency-Key")) return true;
  const isOfVersion = headers.has("If-Match") || headers.has("If-None-Match");
  // It answers the kind of what is gone; a second one cannot.
  const tellsWhatItDeleted = method === "DELETE" && /\/v1\/memories\/[^/]+$/.test(new URL(url).pathname);
  return method !== "POST" && !isOfVersion && !tellsWhatItDeleted;
}

function secondsOf(retryAfter: string): number {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const until = Date.parse(retryAfter);
  return Number.isNaN(until) ? 1 : Math.max(1, Math.ceil((until - Date.now()) / 1000));
}

async function problemOf(response: Response): Promise<Partial<Schemas["ProblemOut"]>> {
  const found: unknown = await response.json().catch(() => ({}));
  return typeof found === "object" && found !== null ? found : {};
}

/** Return the JSON of an answer; `undefined` of one without content. */
function jsonOf(response: Response, text: unknown): unknown {
  if (!text) return undefined;
  try {
    return JSON.parse(String(text)) as unknown;
  } catch (cause) {
    throw new LaminaError(response.status, `${response.url} answers no JSON; is it the address of Lamina?`, {}, undefined, {
      cause,
    });
  }
}

/** Return the error of a call that has no answer: one that cannot be sent, or an answer that breaks off. */
function failed(error: unknown): LaminaError {
  if (error instanceof LaminaError) return error;
  const isHalf = error instanceof URIError;
  const reason = error instanceof Error ? error.message : String(error);
  const message = isHalf ? "an id has half a character; no address can hold it" : `there is no answer: ${reason}`;
  return new LaminaError(0, message, {}, undefined, { cause: error });
}

function refused(response: Response, error: unknown): LaminaError {
  const problem: Partial<Schemas["ProblemOut"]> = typeof error === "object" && error !== null ? error : {};
  const after = response.headers.get("Retry-After");
  const elsewhere = response.headers.get("Location");
  const detail = elsewhere && response.status < 400 ? `leads to ${elsewhere}; give the client that address` : problem.detail;
  const fields = (problem.errors ?? []).map(({ field, reason }) => `${field}: ${reason}`).join("; ");
  const message = fields || detail || `${response.status} ${response.statusText}`;
  return new LaminaError(response.status, message, problem, after === null ? undefined : secondsOf(after));
}
