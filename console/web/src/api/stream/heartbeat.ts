import { ApiError } from "../client";
import type { LiveState } from "./stream";

/** How often a tab without a stream asks whether the server answers, and how often while it does not. */
export const beatEvery = 10_000;
export const beatAway = 3000;
/** One answer that is missing is told as a short break; only what lasts is an outage. */
const shortBreak = 3000;

interface Heart {
  /** Asks something that every key may know. */
  ask(): Promise<unknown>;
  onState(state: LiveState): void;
  isHidden(): boolean;
}

/** Tells, for a key that may not follow what happens, whether the server answers. */
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

  /** Asks now. */
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
