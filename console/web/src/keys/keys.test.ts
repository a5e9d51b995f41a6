import { describe, expect, test } from "vitest";
import type { Node, PreAuthKey } from "@/api";
import { matches, parse } from "@/filter";
import {
  chipsOf,
  completeTag,
  enteredTag,
  isLongLived,
  isTooLong,
  keyName,
  keyState,
  nodesByKey,
  notATag,
  tagsOf,
  tagsToOffer,
  typedTags,
  withoutTag,
} from "./facts";
import { keyFilter, keyFilterFields } from "./filter";
import { joinCommand, onlyHere } from "./join";
import { endOf, localTime, momentOf, momentWords } from "./life";
import { policyTags, unruledTags } from "./policyTags";

const now = Date.parse("2026-03-01T10:00:00Z");
const key = (change: Partial<PreAuthKey>) =>
  ({
    id: "1",
    key: "flp_b81KzQx0LmN4_***",
    description: "Web servers in Frankfurt",
    reusable: false,
    used: false,
    expired: false,
    expiration: "2026-03-01T11:00:00Z",
    aclTags: [],
    ...change,
  }) as PreAuthKey;

describe("the state of a key", () => {
  test.each([
    ["usable", {}],
    ["expired", { expiration: "2026-03-01T09:59:00Z" }],
    ["expired", { expired: true }],
    ["used", { used: true }],
    ["used", { used: true, expired: true }],
    ["usable", { used: true, reusable: true }],
    ["expired", { used: true, reusable: true, expired: true }],
  ] as const)("%s with %j", (state, change) => expect(keyState(key(change), now)).toBe(state));
});

test("a key is known by the part between its kind and its secret", () => expect(keyName(key({}))).toBe("b81KzQx0LmN4"));

test("a description is measured in bytes", () => {
  expect(isTooLong("x".repeat(200))).toBe(false);
  expect(isTooLong("é".repeat(101))).toBe(true);
});

test("nodes count for the key they joined with", () => {
  const nodes = [{ preAuthKey: key({}) }, { preAuthKey: null }, { preAuthKey: key({}) }] as Node[];
  expect([...nodesByKey(nodes)]).toEqual([["1", 2]]);
});

test.each([
  [{ choice: "24", count: "", unit: "hours" }, "2026-03-02T10:00:00.000Z"],
  [{ choice: "custom", count: "3", unit: "days" }, "2026-03-04T10:00:00.000Z"],
  [{ choice: "custom", count: " 2 ", unit: "weeks" }, "2026-03-15T10:00:00.000Z"],
  [{ choice: "custom", count: "0", unit: "days" }, null],
  [{ choice: "custom", count: "1.5", unit: "days" }, null],
  [{ choice: "custom", count: "", unit: "days" }, null],
] as const)("a life of %j ends %s", (life, wanted) => {
  const end = endOf(life, now);
  expect(end && new Date(end).toISOString()).toBe(wanted);
});

test("the end of a key is told with the year when that is another one", () => {
  expect(momentWords(Date.parse("2026-11-21T22:40:00Z"), now, "utc")).toBe("Sat 21 Nov 22:40 UTC");
  expect(momentWords(Date.parse("2027-03-01T10:00:00Z"), now, "utc")).toContain("2027");
});

test.each(["utc", "local"] as const)("a date in the zone %s is read as it is shown", (zone) => {
  const at = Date.parse("2026-07-01T23:30:00Z");
  expect(momentOf(localTime(at, zone), zone)).toBe(at);
  expect(localTime(at, "utc")).toBe("2026-07-01T23:30");
  expect(momentOf("", zone)).toBeNull();
  expect(momentOf("2026-99-01T10:00", zone)).toBeNull();
});

test("only a reusable key can live too long", () => {
  expect(isLongLived(true, now + 25 * 3600e3, now)).toBe(true);
  expect(isLongLived(true, now + 24 * 3600e3, now)).toBe(false);
  expect(isLongLived(false, now + 900 * 3600e3, now)).toBe(false);
});

describe("tags", () => {
  test("are words, each once", () => expect(tagsOf("tag:b, tag:a  tag:b")).toEqual(["tag:a", "tag:b"]));
  test("have a form", () => {
    expect(notATag(["tag:a-1"])).toBeUndefined();
    expect(notATag(["tag:terra_form", "tag:terraform:tests"])).toBeUndefined();
    expect(notATag(["tag:a:80"])).toBe("tag:a:80");
    expect(notATag(["tag:a", "web"])).toBe("web");
    expect(notATag(["tag:1"])).toBe("tag:1");
  });
  test("are offered by what is being typed", () => {
    const known = ["tag:api", "tag:db", "tag:web"];
    expect(tagsToOffer("", known)).toEqual(known);
    expect(tagsToOffer("tag:db we", known)).toEqual(["tag:web"]);
    expect(tagsToOffer("tag:db ", known)).toEqual(["tag:api", "tag:web"]);
    expect(tagsToOffer("tag:db", known)).toEqual([]);
  });
  test("complete the word that is being typed, and only that", () => {
    expect(completeTag("tag:db we", "tag:web")).toBe("tag:db tag:web ");
    expect(completeTag("tag:db ", "tag:web")).toBe("tag:db tag:web ");
    expect(completeTag("tag:web", "tag:web-2")).toBe("tag:web-2 ");
    expect(completeTag("tag:x", "tag:web")).toBe("tag:x tag:web ");
  });
  test("are chips once they are entered", () => {
    const known = ["tag:api", "tag:api-2", "tag:db", "tag:web"];
    expect(chipsOf("tag:db we")).toEqual({ chips: ["tag:db"], word: "we" });
    expect(chipsOf("tag:db ")).toEqual({ chips: ["tag:db"], word: "" });
    expect(typedTags(["tag:db"], "tag:x, we", known)).toBe("tag:db tag:x we");
    expect(typedTags([], "web ", known)).toBe("tag:web ");
    expect(typedTags([], "nonsense ", known)).toBe("nonsense ");
    expect(withoutTag("tag:db tag:web we", "tag:db")).toBe("tag:web we");
    expect(withoutTag("tag:db ", "tag:db")).toBe("");
  });
  test("are meant by the word that only one of them contains, or by their name", () => {
    const known = ["tag:api", "tag:api-2", "tag:db", "tag:web"];
    expect(enteredTag("tag:new", known, [])).toBe("tag:new");
    expect(enteredTag("we", known, [])).toBe("tag:web");
    expect(enteredTag("api", known, [])).toBe("tag:api");
    expect(enteredTag("ap", known, [])).toBeUndefined();
    expect(enteredTag("ap", known, ["tag:api"])).toBe("tag:api-2");
    expect(enteredTag("moon", known, [])).toBeUndefined();
  });
});

describe("a policy's tags", () => {
  test("are read through comments and trailing commas", () => {
    const policy = `{
      // who may give what
      "tagOwners": {"tag:web": [], "tag:db": ["group:ops"],},
      "acls": [
        {"action": "accept", "src": ["tag:ops", "ana@"], "dst": ["*:*"]},
        {"action": "accept", "src": ["tag:web"], "dst": ["tag:db:5432"]},
      ],
      "autoApprovers": {"routes": {"10.0.0.0/8": ["tag:router"]}, "exitNode": ["tag:exit"]},
    }`;
    expect(policyTags(policy)).toEqual({
      known: ["tag:db", "tag:web"],
      powerful: ["tag:exit", "tag:ops", "tag:router"],
      ruled: ["*", "tag:db", "tag:ops", "tag:web"],
    });
  });
  test("of which no rule speaks are found", () => {
    const policy = policyTags(`{"acls": [{"src": ["ana@"], "dst": ["tag:db:5432"]}], "ssh": [{"src": ["tag:ops"]}]}`);
    expect(unruledTags(policy, ["tag:web", "tag:ci"])).toEqual(["tag:web", "tag:ci"]);
    expect(unruledTags(policy, ["tag:web", "tag:ops"])).toEqual([]);
    const colons = policyTags(`{"acls": [{"src": ["ana@"], "dst": ["tag:terraform:tests:80"]}]}`);
    expect(unruledTags(colons, ["tag:terraform:tests"])).toEqual([]);
    expect(unruledTags(colons, ["tag:terraform"])).toEqual(["tag:terraform"]);
    expect(unruledTags(policyTags(`{"acls": [{"src": ["*"], "dst": ["tag:db:*"]}]}`), ["tag:web"])).toEqual([]);
  });
  test("are none in an invalid policy", () => {
    expect(policyTags("")).toEqual({ known: [], powerful: [], ruled: [] });
    expect(policyTags('{"acls": [null, 3], "tagOwners": 1}')).toEqual({ known: [], powerful: [], ruled: [] });
  });
});

test("only Linux needs root to join", () => {
  expect(joinCommand("linux", "https://m.example", "k")).toBe(
    "sudo tailscale up --login-server=https://m.example --auth-key=k",
  );
  expect(joinCommand("windows", "https://m.example", "k")).not.toContain("sudo");
});

test.each([
  ["b81k", true],
  ["frankf", true],
  ["berlin", false],
  ["tag:web", true],
  ["tag:we", false],
  ["user:ana", false],
  ["is:reusable", false],
  ["-is:reusable is:usable", true],
  ["is:nonsense", false],
  ["is:__proto__", false],
])("the filter %j", (line, wanted) =>
  expect(matches(key({ aclTags: ["tag:web"], user: null }), parse(line, keyFilterFields), keyFilter(now))).toBe(wanted),
);

test.each([
  ["http://127.0.0.1:8080", true],
  ["http://localhost:8080", true],
  ["https://[::1]", true],
  ["https://localhost.example.com", false],
  ["http://192.168.1.20:8080", false],
  ["https://mesh.example.com", false],
])("%s is only for the server itself: %s", (server, want) => {
  expect(onlyHere(server)).toBe(want);
});
