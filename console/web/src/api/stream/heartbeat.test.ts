import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../client";
import { beatAway, beatEvery, Heartbeat } from "./heartbeat";
import type { LiveState } from "./stream";

const began = Date.parse("2026-03-01T10:00:00Z");
beforeEach(() => void vi.useFakeTimers({ now: began }));
afterEach(() => void vi.useRealTimers());

function beating() {
  const states: LiveState[] = [];
  const world = { answer: 200, hidden: false, asked: 0 };
  const heart = new Heartbeat({
    ask: async () => {
      world.asked++;
      if (world.answer === -1) throw new DOMException("too long", "TimeoutError");
      if (world.answer !== 200) throw new ApiError(world.answer, "", "", "");
    },
    isHidden: () => world.hidden,
    onState: (state) => states.push(state),
  });
  heart.start();
  return { states, world, heart };
}

test.each([0, 502, 504, -1])(
  "a server that does not answer (%s) is told once, and so is that it is back",
  async (status) => {
    const { states, world, heart } = beating();
    await vi.advanceTimersByTimeAsync(beatEvery);
    expect(states).toEqual([{ name: "polled" }]);
    world.answer = status;
    await vi.advanceTimersByTimeAsync(beatEvery);
    // A break that has only just started counts as a short one.
    expect(states.slice(1)).toEqual([{ name: "connecting", since: began + 2 * beatEvery - 3000 }]);
    await vi.advanceTimersByTimeAsync(3 * beatAway);
    expect(states).toHaveLength(2);
    expect(world.asked).toBe(5);
    world.answer = 200;
    await vi.advanceTimersByTimeAsync(beatAway);
    expect(states.slice(2)).toEqual([{ name: "polled" }]);
    heart.stop();
  },
);

test("what the server refuses it has answered", async () => {
  const { states, world, heart } = beating();
  world.answer = 403;
  await vi.advanceTimersByTimeAsync(beatEvery);
  expect(states).toEqual([{ name: "polled" }]);
  heart.stop();
});

test("a tab that nobody looks at asks nothing, and one that is stopped no more", async () => {
  const { states, world, heart } = beating();
  world.hidden = true;
  world.answer = 0;
  await vi.advanceTimersByTimeAsync(10 * beatEvery);
  expect(world.asked).toBe(0);
  world.hidden = false;
  await heart.beat();
  expect(states).toHaveLength(2);
  heart.stop();
  await vi.advanceTimersByTimeAsync(10 * beatEvery);
  expect(world.asked).toBe(1);
});
