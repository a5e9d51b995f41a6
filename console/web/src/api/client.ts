import { isAttended } from "./attended";
import { signedOut } from "./leave";
import { laterRevision } from "./revision";
import type { BodyOf, Method, Operation, ParamsOf, PathOf, Problem, QueryOf, ResultOf } from "./types";

/** A response with the values of its headers. */
export interface Answer<T> {
  data: T;
  /** The value for If-Match, if a single object was read. */
  etag: string | null;
  /** The revision of the server's state that the response shows. */
  revision: string;
  requestId: string;
}

type Given<K extends string, T> = [T] extends [never] ? { [k in K]?: undefined } : { [k in K]: T };
type Optional<K extends string, T> = [T] extends [never] ? { [k in K]?: undefined } : { [k in K]?: T };

export type CallOptions<O> = Given<"params", ParamsOf<O>> &
  Optional<"query", QueryOf<O>> &
  Optional<"body", BodyOf<O>> & {
    /** The ETag of what the person looked at. The call fails with 412 if it has changed since. */
    ifMatch?: string | null;
    /** An idempotency key from newRequestName: the call is executed once, however often it is sent. */
    once?: string;
    signal?: AbortSignal;
  };

/** Why a call failed, as text that can be shown. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    /** HTTP status; 0 if there was no response. */
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    /** Also in the server's log. Empty if there was no response. */
    readonly requestId: string,
    readonly problem: Partial<Problem> & { type?: string } = {},
    /** The ETag for an object that does not exist, where its absence can be a precondition. */
    readonly etag: string | null = null,
  ) {
    super(detail);
  }

  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
  get sessionEnded(): boolean {
    return this.status === 401;
  }
  /** Whether somebody else changed the object in the meantime; problem.current is its current state. */
  get stale(): boolean {
    return this.status === 412;
  }
  /** Whether the console no longer accepts this page's CSRF token: another tab may have started another session. */
  get notFromHere(): boolean {
    return this.status === 403 && this.problem.type === "request_refused";
  }
}

const anotherKey =
  "Another tab switched to a different API key, which this page now uses too. Repeat the change if you still want it.";

export interface ClientOptions {
  fetch: typeof globalThis.fetch;
  /** Whether somebody is using the page, which keeps the session alive. */
  isAttended(): boolean;
  /** Called once, when the server no longer accepts the session. */
  onSessionEnded(): void;
}

/** The path under which the console forwards calls to the server's /api/. */
const base = "/admin";

export class Client {
  #csrf = "";
  #key = "";
  #written = "0";
  #ended = false;
  constructor(private readonly options: ClientOptions) {}

  /** Reloads the session after the console has refused the CSRF token that the page has. */
  renew: (() => Promise<unknown>) | null = null;

  /** Adopts the CSRF token and the key of a session. */
  goOn(csrf: string, key: string) {
    this.#csrf = csrf;
    this.#key = key;
  }

  async call<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    options: CallOptions<Operation<M, P>>,
  ): Promise<Answer<ResultOf<Operation<M, P>>>> {
    const o = options as CallOptions<{ parameters: { path: Record<string, string>; query?: Record<string, unknown> } }>;
    const headers: Record<string, string> = { Accept: "application/json" };
    const body = (options as { body?: unknown }).body;
    if (method === "get") {
      // Reads must see what this tab has written, whichever replica responds.
      if (this.#written !== "0") headers["Mesh-Min-Revision"] = this.#written;
    }
    if (o.ifMatch) headers["If-Match"] = o.ifMatch;
    if (o.once) headers["Idempotency-Key"] = o.once;
    const url = urlOf(path, o.params, o.query);
    const init = {
      method: method.toUpperCase(),
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: o.signal,
    };
    const response = await (method === "get" ? this.send(url, init) : this.#write(url, init));
    const revision = response.headers.get("Mesh-Revision") ?? "0";
    if (method !== "get") this.#written = laterRevision(this.#written, revision);
    return {
      data: (response.status === 204 ? undefined : await response.json()) as ResultOf<Operation<M, P>>,
      etag: response.headers.get("ETag"),
      revision,
      requestId: response.headers.get("X-Request-Id") ?? "",
    };
  }

  /** A read for which only the response body matters. */
  async get<P extends PathOf<"get">>(
    path: P,
    options?: CallOptions<Operation<"get", P>>,
  ): Promise<ResultOf<Operation<"get", P>>> {
    return (await this.call("get", path, options ?? ({} as CallOptions<Operation<"get", P>>))).data;
  }

  /** Continues with another API key, and returns the new session. */
  async changeKey(key: string): Promise<unknown> {
    const init = { method: "POST", headers: { Accept: "application/json" }, body: JSON.stringify({ key }) };
    return (await this.#write(`${base}/api/session`, init)).json();
  }

  /**
   * Sends a write. If the console refuses it and another tab has started a session with the same key, it is sent again:
   * the first attempt was not forwarded. A write requested under one key is never sent under another.
   */
  async #write(url: string, init: RequestInit & { headers: Record<string, string> }): Promise<Response> {
    const [word, key] = [this.#csrf, this.#key];
    const send = () =>
      this.send(url, {
        ...init,
        headers: { ...init.headers, "Content-Type": "application/json", "X-CSRF": this.#csrf },
      });
    try {
      return await send();
    } catch (error) {
      if (!this.renew || !(error instanceof ApiError) || !error.notFromHere) throw error;
      await this.renew();
      if (this.#key !== key) throw new ApiError(error.status, error.title, anotherKey, error.requestId, error.problem);
      if (this.#csrf === word) throw error;
      return send();
    }
  }

  /** Sends a request and returns its successful response; anything else throws an ApiError. */
  async send(url: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await this.options.fetch(url, {
        ...init,
        headers: this.options.isAttended() ? { ...init.headers, "X-Attended": "1" } : init.headers,
        credentials: "same-origin",
        cache: "no-store",
        redirect: "error",
      });
    } catch (cause) {
      if (init.signal?.aborted) throw cause;
      throw new ApiError(
        0,
        "No response",
        "The console isn't responding. Check your connection; the page retries automatically.",
        "",
      );
    }
    if (response.ok) return response;
    const failure = await errorOf(response);
    if (failure.sessionEnded && !this.#ended) {
      this.#ended = true;
      this.options.onSessionEnded();
    }
    throw failure;
  }
}

export function urlOf(path: string, params?: Record<string, unknown>, query?: Record<string, unknown>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params?.[name] ?? "")));
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null) words.set(name, String(value));
  }
  const text = words.toString();
  return base + filled + (text && `?${text}`);
}

async function errorOf(response: Response): Promise<ApiError> {
  const requestId = response.headers.get("X-Request-Id") ?? "";
  const problem = await response.json().catch(() => ({}));
  const title = typeof problem.title === "string" ? problem.title : response.statusText || `Status ${response.status}`;
  const detail = typeof problem.detail === "string" ? problem.detail : "The server gave no reason.";
  return new ApiError(response.status, title, detail, requestId, problem, response.headers.get("ETag"));
}

/** A random idempotency key. Unlike crypto.randomUUID, it also works outside a secure context. */
export function newRequestName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** The client of this tab. Without a session, the same URL shows the login form, so the page is reloaded. */
export const api = new Client({
  fetch: (input, init) => fetch(input, init),
  isAttended,
  onSessionEnded: signedOut,
});
