import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ApiError, api } from "../client";
import { addPage, type Collection } from "../collection";
import { keys } from "../resources";
import type { Change, Node, PreAuthKey, User } from "../types";
import { calm, follow, patchCache, poll, pollEvery, refreshOlder } from "./live";
import { mergeNode, mergeUser, outdatedBy } from "./reduce";
import { EventParser } from "./sse";
import { EventFollower, hiddenAfter, type LiveState } from "./stream";

describe("the parser", () => {
  const text = 'retry: 1000\n\nid: 7-0\nevent: node.created\ndata: {"a":\ndata: 1}\n\n: heartbeat\n\nid: 8-0\n\n';
  const wanted = [
    { id: "7-0", event: "node.created", data: '{"a":\n1}' },
    { id: "8-0", event: "", data: "" },
  ];
  test("reads events, comments and bare ids", () => expect(new EventParser().feed(text)).toEqual(wanted));
  test("does not care where the text is cut", () => {
    const parser = new EventParser();
    expect([...text].flatMap((piece) => parser.feed(piece))).toEqual(wanted);
  });
  test("takes every kind of line end", () =>
    expect(new EventParser().feed("id: 1\r\ndata: x\r\n\r\n")).toEqual([{ id: "1", event: "", data: "x" }]));
});

const node = (fields: Partial<Node>): Node =>
  ({ id: "1", givenName: "a", online: false, lastSeen: "t0", tags: [], user: { id: "9" }, ...fields }) as Node;
const change = (fields: Partial<Change>): Change =>
  ({
    id: "200-0",
    at: "t1",
    kind: "node",
    object: "1",
    verb: "changed",
    before: null,
    after: null,
    ...fields,
  }) as Change;
const shape = (n: Node) => n as unknown as Change["after"];

describe("a node", () => {
  test("comes and goes by events of presence", () => {
    expect(mergeNode(node({}), change({ verb: "online" }))).toMatchObject({ online: true, lastSeen: "t1" });
    expect(mergeNode(undefined, change({ verb: "online" }))).toBeNull();
  });
  test("keeps its presence when it changes", () => {
    const after = shape(node({ givenName: "b", online: false }));
    expect(mergeNode(node({ online: true, lastSeen: "t5" }), change({ after }))).toMatchObject({
      givenName: "b",
      online: true,
      lastSeen: "t5",
    });
  });
});

describe("a user", () => {
  const person = (fields: Partial<User>) => ({ id: "9", name: "ana", providerId: "x/ana", ...fields }) as User;
  const to = (fields: Partial<User>) => change({ kind: "user", after: person(fields) as never });
  const admin = person({ groups: ["it"], role: "admin", roleGroup: "it" });
  test("keeps the role, which the stream does not report, while nothing changes that decides it", () => {
    expect(mergeUser(admin, to({ groups: ["it"], email: "a@example.com" }))).toMatchObject({
      email: "a@example.com",
      role: "admin",
      roleGroup: "it",
    });
  });
  test("has the role that was assigned, and none that is no longer certain", () => {
    expect(mergeUser(admin, to({ groups: ["it"], assignedRole: "read" }))?.role).toBe("read");
    expect(mergeUser(admin, to({}))?.role).toBeUndefined();
    expect(mergeUser(undefined, to({ assignedRole: "read", needsApproval: true }))?.role).toBeUndefined();
    expect(mergeUser(admin, change({ kind: "user" }))).toBeNull();
  });
  test("is read again when the role may have changed", () => {
    const outdated = (before: Partial<User>, after: Partial<User>) =>
      outdatedBy({ ...to(after), before: person(before) as never }).includes("users");
    expect(outdated({ groups: ["it"] }, { groups: ["it"], email: "a@example.com" })).toBe(false);
    expect(outdated({ groups: ["it"] }, {})).toBe(true);
    expect(outdated({ assignedRole: "read" }, {})).toBe(true);
    expect(outdated({ needsApproval: true }, {})).toBe(true);
  });
});

test.each<[string, Partial<Change>, string[]]>([
  [
    "routes of a node",
    { before: shape(node({ availableRoutes: [] })), after: shape(node({ availableRoutes: ["10.0.0.0/8"] })) },
    ["audit", "access", "routes"],
  ],
  [
    "a preference of a node",
    { before: shape(node({})), after: shape(node({ routePreferences: { "10.0.0.0/8": 5 } })) },
    ["audit", "access", "routes"],
  ],
  ["a new node", { verb: "created", after: shape(node({})) }, ["audit", "access", "users"]],
  ["tags of a node", { before: shape(node({})), after: shape(node({ tags: ["tag:a"] })) }, ["audit", "access"]],
  ["the policy", { kind: "policy" }, ["policy", "routes", "audit", "access"]],
  ["something new", { kind: "moon" }, ["audit"]],
])("%s outdates", (_, fields, parts) => expect(outdatedBy(change(fields))).toEqual(parts));

test("the cache is patched in place and older lists are reloaded", () => {
  const client = new QueryClient();
  client.setQueryData(keys.nodes, addPage(undefined, [node({})], "100", true));
  patchCache(client, [change({ verb: "online" }), change({ id: "201-0", kind: "user", object: "9" })]);
  expect(client.getQueryData<Collection<Node>>(keys.nodes)?.items[0]?.online).toBe(true);
  refreshOlder(client, "100");
  expect(client.getQueryState(keys.nodes)?.isInvalidated).toBe(false);
  refreshOlder(client, "101");
  expect(client.getQueryState(keys.nodes)?.isInvalidated).toBe(true);
});

test("what a storm of changes outdates is read at once and then once in a while, the last time after its end", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  const read = vi.spyOn(client, "invalidateQueries");
  for (let i = 0; i < 90; i++) {
    patchCache(client, [change({ id: `${300 + i}-0`, kind: "dns" })]);
    await vi.advanceTimersByTimeAsync(calm / 25);
  }
  expect(read).toHaveBeenCalledTimes(4);
  await vi.advanceTimersByTimeAsync(10 * calm);
  expect(read).toHaveBeenCalledTimes(5);
  vi.useRealTimers();
});

test.each([
  ["for the first time", undefined],
  ["again", "before"],
])(
  "what changes while something is read %s is read once more after that, and nothing is read twice at once",
  async (_, old) => {
    vi.useFakeTimers();
    const client = new QueryClient();
    if (old) client.setQueryData(keys.dns, old);
    let now = "before";
    let begun = 0;
    const queryFn = async () => {
      begun++;
      const read = now;
      await new Promise((done) => setTimeout(done, 3 * calm));
      return read;
    };
    const leave = new QueryObserver(client, { queryKey: keys.dns, queryFn }).subscribe(() => {});
    await vi.advanceTimersByTimeAsync(calm / 2);
    for (const id of ["300-0", "301-0", "302-0"]) {
      now = id;
      patchCache(client, [change({ id, kind: "dns" })]);
      await vi.advanceTimersByTimeAsync(calm / 2);
    }
    expect(begun).toBe(1);
    await vi.advanceTimersByTimeAsync(10 * calm);
    expect(client.getQueryData(keys.dns)).toBe("302-0");
    expect(begun).toBe(2);
    leave();
    vi.useRealTimers();
  },
);

test("a list that was asked for before the stream began and comes after is read once more", async () => {
  const client = new QueryClient();
  const revisions = ["100", "101"];
  const queryFn = async () => addPage<User>(undefined, [], revisions.shift() ?? "0", true);
  const leave = new QueryObserver(client, { queryKey: keys.users, queryFn }).subscribe(() => {});
  refreshOlder(client, "101");
  await vi.waitFor(() => expect(client.getQueryData<Collection<User>>(keys.users)?.revision).toBe("101"));
  leave();
});

test("a user that was renamed has the new name wherever it owns something", () => {
  const client = new QueryClient({ defaultOptions: { queries: { structuralSharing: false } } });
  const [ana, bea] = [{ id: "9", name: "ana" } as User, { id: "9", name: "bea" } as User];
  const others = node({ id: "2", user: { id: "8" } as User });
  client.setQueryData(keys.nodes, addPage(undefined, [node({ user: ana, createdBy: ana }), others], "100", true));
  client.setQueryData(keys.preAuthKeys, addPage(undefined, [{ id: "4", user: ana } as PreAuthKey], "100", true));
  client.setQueryData(keys.node("1"), { data: { node: node({ user: ana }) } });
  patchCache(client, [change({ id: "201-0", kind: "user", object: "9", before: ana, after: bea } as never)]);
  const [first, second] = client.getQueryData<Collection<Node>>(keys.nodes)?.items ?? [];
  expect([first?.user, first?.createdBy]).toEqual([bea, bea]);
  expect(second).toBe(others);
  expect(client.getQueryData<Collection<PreAuthKey>>(keys.preAuthKeys)?.items[0]?.user).toBe(bea);
  expect(client.getQueryData<{ data: { node: Node } }>(keys.node("1"))?.data.node.user).toBe(bea);
});

test("a tab that nobody has seen yet takes no stream, and reloads when it is seen", async () => {
  const client = new QueryClient();
  client.setQueryData(keys.dns, "old");
  const seen = Object.assign(new EventTarget(), { hidden: true });
  vi.stubGlobal("document", seen);
  const send = vi
    .spyOn(api, "send")
    .mockImplementation(async () => new Response(new ReadableStream(), { headers: { "Mesh-Revision": "50" } }));
  const states: string[] = [];
  const end = follow(client, (state) => states.push(state.name));
  expect(send).not.toHaveBeenCalled();
  expect(states).toEqual(["asleep"]);
  seen.hidden = false;
  seen.dispatchEvent(new Event("visibilitychange"));
  await vi.waitFor(() => expect(states).toEqual(["asleep", "live"]));
  expect(client.getQueryState(keys.dns)?.isInvalidated).toBe(true);
  end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

test("a tab too many is not offline: it reloads from time to time until there is a stream for it", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  const read = vi.spyOn(client, "invalidateQueries");
  vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
  const send = vi.spyOn(api, "send").mockRejectedValue(new ApiError(503, "", "", "", { type: "too_many_streams" }));
  const states = new Set<string>();
  const end = follow(client, (state) => states.add(state.name));
  await vi.advanceTimersByTimeAsync(2.5 * pollEvery);
  expect([...states]).toEqual(["polled"]);
  expect(read).toHaveBeenCalledTimes(2);
  expect(send.mock.calls.length).toBeLessThan(12);
  const beating = () =>
    new ReadableStream<Uint8Array>({
      start: (feed) => {
        setInterval(() => feed.enqueue(new TextEncoder().encode(": beat\n\n")), 4000);
      },
    });
  send.mockImplementation(async () => new Response(beating(), { headers: { "Mesh-Revision": "50" } }));
  await vi.advanceTimersByTimeAsync(15_000);
  expect([...states]).toEqual(["polled", "live"]);
  const before = read.mock.calls.length;
  await vi.advanceTimersByTimeAsync(pollEvery);
  expect(read).toHaveBeenCalledTimes(before);
  end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a page whose stream is refused reloads its session", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  const read = vi.spyOn(client, "invalidateQueries");
  vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
  vi.spyOn(api, "send").mockRejectedValue(new ApiError(403, "", "", ""));
  const end = follow(client, () => {});
  await vi.advanceTimersByTimeAsync(100);
  expect(read).toHaveBeenCalledExactlyOnceWith({ queryKey: ["session"] }, { cancelRefetch: false });
  end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a key that may not follow the stream reloads from time to time", () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  const read = vi.spyOn(client, "invalidateQueries");
  vi.stubGlobal("document", { hidden: false });
  const end = poll(client);
  vi.advanceTimersByTime(2 * pollEvery);
  end();
  vi.advanceTimersByTime(2 * pollEvery);
  expect(read).toHaveBeenCalledTimes(2);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("the follower", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function following() {
    const opened: (string | null)[] = [];
    const states: LiveState["name"][] = [];
    const changes: string[] = [];
    let feed: ReadableStreamDefaultController<Uint8Array> | undefined;
    let failure: Error | null = null;
    const ended = vi.fn();
    const reset = vi.fn();
    const begin = vi.fn();
    const follower = new EventFollower({
      open: async (after, signal) => {
        opened.push(after);
        if (failure) throw failure;
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            feed = controller;
          },
        });
        signal.addEventListener("abort", () => {
          try {
            feed?.close();
          } catch {
            /* it was */
          }
        });
        return new Response(body, { headers: { "Mesh-Revision": "50" } });
      },
      onState: (state) => states.push(state.name),
      onChanges: (list) => changes.push(...list.map((c) => c.id)),
      onBegin: begin,
      onReset: reset,
      onRefused: () => {},
      onSessionEnded: ended,
    });
    const say = async (text: string) => {
      feed?.enqueue(new TextEncoder().encode(text));
      await vi.advanceTimersByTimeAsync(200);
    };
    /** Time passes on a stream that only carries heartbeats. */
    const beat = async (milliseconds: number) => {
      for (let passed = 0; passed < milliseconds; passed += 4000) {
        await say(": beat\n\n");
        await vi.advanceTimersByTimeAsync(3800);
      }
    };
    const fail = (error: Error | null) => {
      failure = error;
    };
    const cut = async () => {
      feed?.close();
      await vi.advanceTimersByTimeAsync(1000);
    };
    return { follower, opened, states, changes, say, beat, cut, fail, ended, reset, begin };
  }
  const event = (id: string) => `id: ${id}\nevent: node.online\ndata: {"id":"${id}"}\n\n`;

  test("begins at a revision, and resumes after the last event when the stream is cut", async () => {
    const f = following();
    f.follower.start();
    await f.say(event("51-0"));
    await f.cut();
    expect(f.begin).toHaveBeenCalledExactlyOnceWith("50");
    expect(f.changes).toEqual(["51-0"]);
    expect(f.opened).toEqual([null, "51-0"]);
    expect(f.states).toEqual(["live", "connecting", "live"]);
    f.follower.stop();
  });

  test("sleeps while nobody looks, and catches up", async () => {
    const f = following();
    f.follower.start();
    await f.say(event("51-0"));
    f.follower.setHidden(true);
    await f.beat(30_000);
    f.follower.setHidden(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(f.opened).toHaveLength(1);
    f.follower.setHidden(true);
    await f.beat(hiddenAfter);
    expect(f.states.at(-1)).toBe("asleep");
    f.follower.setHidden(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(f.opened).toEqual([null, "51-0"]);
    f.follower.stop();
  });

  test("notices within 15 seconds that nothing comes any more, and connects again", async () => {
    const f = following();
    f.follower.start();
    await f.say(event("51-0"));
    await f.beat(60_000);
    expect(f.states).toEqual(["live"]);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(f.states.slice(0, 2)).toEqual(["live", "connecting"]);
    expect(f.opened.slice(0, 2)).toEqual([null, "51-0"]);
    f.follower.stop();
  });

  test("tells of a reset and of the end of the session", async () => {
    const f = following();
    f.follower.start();
    await f.say('id: 60-0\nevent: reset\ndata: {"revision":"60"}\n\n');
    expect(f.reset).toHaveBeenCalledOnce();
    await f.say("event: session-ended\ndata: {}\n\n");
    expect(f.ended).toHaveBeenCalledOnce();
    f.follower.stop();
  });

  test("gives up when the session is over, and tries again when the server is away", async () => {
    const f = following();
    f.fail(new ApiError(503, "", "", ""));
    f.follower.start();
    await vi.advanceTimersByTimeAsync(5000);
    expect(f.opened.length).toBeGreaterThan(2);
    f.fail(new ApiError(401, "", "", ""));
    await vi.advanceTimersByTimeAsync(20_000);
    const tries = f.opened.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(f.opened).toHaveLength(tries);
    expect(f.ended).toHaveBeenCalledOnce();
    f.follower.stop();
  });
});
