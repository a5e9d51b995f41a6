import { expect, test } from "vitest";
import type { PersonSession } from "@/api";
import { matches, parse } from "@/filter";
import { sessionFilter, sessionFilterFields, sessionName } from "./facts";

const session = (name: string, more: Partial<PersonSession> = {}): PersonSession =>
  ({
    user: { name, displayName: "", email: `${name}@example.com` },
    client: "console",
    description: "Firefox on Linux",
    lastUsedFrom: "192.0.2.7",
    ...more,
  }) as PersonSession;

test.each([
  ["ana", ["ana"]],
  ["firefox", ["ana"]],
  ["192.0.2", ["ana"]],
  ["user:bob", ["bob"]],
  ["client:cli", ["bob"]],
  ["-client:cli", ["ana"]],
])("%s", (line, wanted) => {
  const all = [session("ana"), session("bob", { client: "cli", description: "laptop", lastUsedFrom: "" })];
  const terms = parse(line, sessionFilterFields);
  expect(all.filter((each) => matches(each, terms, sessionFilter)).map(({ user }) => user.name)).toEqual(wanted);
});

test("a session without a description is named after its client", () => {
  expect(sessionName(session("ana"))).toBe("ana, Firefox on Linux");
  expect(sessionName(session("ana", { client: "cli", description: "" }))).toBe("ana, Command line");
});
