import { ApiError } from "../client";
import type { LiveState } from "./stream";

/** How often a tab without a stream checks that the server responds, in milliseconds. */
export const beatEvery = 5000;
/** How often it checks while the server does not respond. */
export const beatAway = 3000;
/**
 * A first missing response is reported as a break of at most this length, so that it does not count as an outage yet.
 */
const shortBreak = 3000;

interface Heart {
  /** Requests something that every key may read. */
  ask(): Promise<unknown>;
  onState(state: LiveState): void;
  isHidden(): boolean;
}

/** Checks whether the server responds, for a key that may not follow the event stream. */
export class Heartbeat {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #answered = Date.now();
  #away = false;
  #stopped = false;
  #asking = false;

  constructor(private readonly heart: Heart) {}

  start() {
    this.#stopped = false;
    this.heart.onState({ name: "polled" });
    this.#later(beatEvery);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #later(wait: number) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.beat(), wait);
  }

  /** Checks now. */
  async beat() {
    if (this.#asking || this.#stopped) return;
    if (!this.heart.isHidden()) {
      this.#asking = true;
      const away = await this.heart.ask().then(
        () => false,
        (error) => !(error instanceof ApiError) || error.unreachable,
      );
      this.#asking = false;
      if (this.#stopped) return;
      this.#hear(away);
    }
    this.#later(this.#away ? beatAway : beatEvery);
  }

  #hear(away: boolean) {
    if (!away) this.#answered = Date.now();
    if (away === this.#away) return;
    this.#away = away;
    const since = Math.max(this.#answered, Date.now() - shortBreak);
    this.heart.onState(away ? { name: "connecting", since } : { name: "polled" });
  }
}
