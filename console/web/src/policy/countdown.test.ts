import { expect, it } from "vitest";
import { countdown } from "./countdown";

it.each([
  [0, "0:00"],
  [9, "0:09"],
  [300, "5:00"],
  [3599, "59:59"],
  [86_399, "23:59:59"],
])("%i seconds are %s", (seconds, shown) => expect(countdown(seconds)).toBe(shown));
