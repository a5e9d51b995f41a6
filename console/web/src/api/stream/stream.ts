import { ApiError } from "../client";
import type { Change } from "../types";
import { EventParser } from "./sse";

export type LiveState =
  | { name: "live" }
  /** Not connected. `since` is when it last was, or when the page was loaded. */
  | { name: "connecting"; since: number }
  /** Closed because the page is hidden. */
  | { name: "asleep" }
  /** The key may not follow the stream, or too many tabs do: what is shown is refetched periodically. */
  | { name: "polled" };

export interface StreamHooks {
  /** Opens the stream after the given event; without one, from now on. */
  open(after: string | null, signal: AbortSignal): Promise<Response>;
  onState(state: LiveState): void;
  onChanges(changes: Change[]): void;
  /** Called when the stream starts at this revision; it does not cover anything before it. */
  onBegin(revision: string): void;
  /** Called when some events are no longer available, so that everything must be refetched. */
  onReset(): void;
  /** Called when the server refuses the stream: the person may have lost the permission. */
  onRefused(): void;
  onSessionEnded(): void;
}

/** A hidden tab closes its stream after this time, in milliseconds. */
export const hiddenAfter = 60_000;
/** Events that arrive within this time, in milliseconds, are shown together. */
const gather = 80;
const longestWait = 10_000;
/**
 * A stream that is silent for this long is broken: the console sends something every 4 seconds while the server
 * responds.
 */
const silence = 12_000;

/** Follows the server's event stream: reconnects, resumes, and sleeps while the tab is hidden. */
export class EventFollower {
  #last: string | null = null;
  #abort: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sleep: ReturnType<typeof setTimeout> | undefined;
  #flush: ReturnType<typeof setTimeout> | undefined;
  #changes: Change[] = [];
  #failures = 0;
  #lastLive = Date.now();
  #stopped = false;
  /** Whether the first stream starts so late that everything read before it must be refetched. */
  #late = false;

  constructor(private readonly hooks: StreamHooks) {}

  /** A tab that is opened in the background opens no stream until it is visible. */
  start(hidden = false) {
    this.#stopped = false;
    if (hidden) {
      this.#late = true;
      this.hooks.onState({ name: "asleep" });
    } else void this.#run();
  }

  stop() {
    this.#stopped = true;
    this.#close();
    clearTimeout(this.#sleep);
  }

  setHidden(hidden: boolean) {
    clearTimeout(this.#sleep);
    if (hidden) {
      this.#sleep = setTimeout(() => {
        this.#close();
        this.hooks.onState({ name: "asleep" });
      }, hiddenAfter);
    } else if (!this.#abort && !this.#stopped) {
      this.#failures = 0;
      void this.#run();
    }
  }

  #close() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
    this.#deliver();
  }

  async #run() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    let crowded = false;
    try {
      await this.#follow(abort);
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.sessionEnded) return this.hooks.onSessionEnded();
        if (error.status === 403) this.hooks.onRefused();
        crowded = error.problem.type === "too_many_streams";
      }
    }
    if (this.#abort !== abort || this.#stopped) return;
    this.#deliver();
    this.#late ||= crowded;
    this.hooks.onState(crowded ? { name: "polled" } : { name: "connecting", since: this.#lastLive });
    const wait =
      (crowded ? longestWait : Math.min(500 * 2 ** this.#failures, longestWait)) * (0.75 + Math.random() / 2);
    this.#failures++;
    this.#timer = setTimeout(() => void this.#run(), wait);
  }

  async #follow(abort: AbortController) {
    const response = await this.hooks.open(this.#last, abort.signal);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    this.#failures = 0;
    this.hooks.onState({ name: "live" });
    const revision = response.headers.get("Mesh-Revision");
    if (this.#last === null && revision) {
      if (this.#late) this.hooks.onReset();
      else this.hooks.onBegin(revision);
      this.#late = false;
    }
    const parser = new EventParser();
    let watch: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        watch = setTimeout(() => void reader.cancel(), silence);
        const { done, value } = await reader.read();
        clearTimeout(watch);
        if (done) return;
        this.#lastLive = Date.now();
        for (const event of parser.feed(value)) this.#take(event.event, event.data, event.id);
      }
    } finally {
      clearTimeout(watch);
      abort.abort();
    }
  }

  #take(name: string, data: string, id: string | undefined) {
    if (id) this.#last = id;
    if (name === "session-ended") return this.hooks.onSessionEnded();
    if (name === "reset") {
      this.#changes = [];
      return this.hooks.onReset();
    }
    if (!data) return;
    this.#changes.push(JSON.parse(data) as Change);
    this.#flush ??= setTimeout(() => this.#deliver(), gather);
  }

  #deliver() {
    clearTimeout(this.#flush);
    this.#flush = undefined;
    if (this.#changes.length === 0) return;
    const changes = this.#changes;
    this.#changes = [];
    this.hooks.onChanges(changes);
  }
}
