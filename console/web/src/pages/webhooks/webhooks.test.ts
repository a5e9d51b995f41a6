import { expect, test } from "vitest";
import { eventsOf, eventsToOffer, hostOf, isEvent, isReceiver, stateOf } from "./facts";

const at = "2026-03-01T09:30:00Z";
const quiet = { failures: 0, lastSuccess: null, lastFailure: null, lastAnswer: "" };

test.each([
  [true, quiet, "unused"],
  [true, { ...quiet, lastSuccess: at }, "ok"],
  [true, { ...quiet, lastSuccess: at, lastFailure: at, failures: 3 }, "failing"],
  [false, { ...quiet, failures: 3 }, "disabled"],
] as const)("enabled %s, %j: %s", (enabled, delivery, state) => expect(stateOf({ enabled, delivery })).toBe(state));

test.each([
  ["https://receiver.example.com/mesh", true],
  ["http://10.0.0.1:8080", true],
  ["ftp://receiver.example.com", false],
  ["receiver.example.com", false],
  ["", false],
])("%j is a receiver: %s", (url, is) => expect(isReceiver(url)).toBe(is));

test("a receiver is known by its host, also where the rest is hidden", () => {
  expect(hostOf("https://receiver.example.com:8443/mesh?token=x")).toBe("receiver.example.com:8443");
  expect(hostOf("receiver.example.com")).toBe("receiver.example.com");
});

test.each([
  ["node.*", true],
  ["node.online", true],
  ["policyUpdate", true],
  ["user.online", false],
  ["node.renamed", false],
  ["node", false],
  ["node.created.x", false],
  ["machine.*", false],
])("%s is an event: %s", (name, is) => expect(isEvent(name)).toBe(is));

test("events are separated by spaces or commas, and count once", () =>
  expect(eventsOf(" node.*, policyUpdate  node.* ")).toEqual(["node.*", "policyUpdate"]));

test("what is chosen or covered is not offered", () => {
  expect(eventsToOffer(["node.*"])).toEqual(["user.*", "policy.*", "login.*"]);
  expect(eventsToOffer(["node.created"])).not.toContain("node.created");
});
