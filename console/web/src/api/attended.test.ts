import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { attendedFor, isAttended, watchUse } from "./attended";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a page is attended for a while after somebody used it, and not because it moves", () => {
  const page = new EventTarget();
  watchUse(page);
  for (const deed of ["pointerdown", "keydown", "wheel"]) {
    vi.advanceTimersByTime(attendedFor);
    expect(isAttended()).toBe(false);
    page.dispatchEvent(new Event("pointermove"));
    expect(isAttended()).toBe(false);
    page.dispatchEvent(new Event(deed));
    expect(isAttended()).toBe(true);
    vi.advanceTimersByTime(attendedFor - 1);
    expect(isAttended()).toBe(true);
  }
});
