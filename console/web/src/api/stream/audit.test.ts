import { InfiniteQueryObserver, QueryClient } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import { api } from "../client";
import { auditQuery } from "../history";
import type { Change } from "../types";
import { type AuditFilter, addChanges, fits } from "./audit";
import { patchCache } from "./live";

const change = (id: string, more: Partial<Change> = {}): Change => ({
  id,
  at: "2026-03-01T10:00:00Z",
  actor: { kind: "key", id: "3", name: "Ulc23", address: "", requestId: "", reason: "" },
  verb: "changed",
  kind: "node",
  object: "1",
  before: null,
  after: null,
  ...more,
});

test.each<[AuditFilter, boolean]>([
  [{}, true],
  [{ kind: "user,node" }, true],
  [{ kind: "user" }, false],
  [{ verb: "created,deleted" }, false],
  [{ object: "1" }, true],
  [{ object: "2" }, false],
  [{ actor: "key" }, true],
  [{ actor: "key:3" }, true],
  [{ actor: "key:Ulc23" }, true],
  [{ actor: "key:4" }, false],
  [{ from: "2026-03-01T10:00:00Z" }, true],
  [{ from: "2026-03-01T10:00:01Z" }, false],
  [{ to: "2026-03-01T10:00:00Z" }, false],
])("%j lists the change: %s", (filter, wanted) => expect(fits(filter, change("51-0"))).toBe(wanted));

test("coming and going is not in the audit", () => expect(fits({}, change("51-0", { verb: "online" }))).toBe(false));

test("what the stream tells stands first, each once, all of a revision", () => {
  const page = { entries: [change("51-0"), change("50-0")], next: "50-0", revision: "50" };
  const before = { pages: [page], pageParams: [undefined] };
  const after = addChanges(before, {}, [change("50-0"), change("51-0"), change("51-1"), change("52-0")]);
  expect(after.pages[0]?.entries.map((entry) => entry.id)).toEqual(["52-0", "51-1", "51-0", "50-0"]);
  const more = addChanges(after, {}, [change("52-1")]);
  expect(more.pages[0]?.entries[0]?.id).toBe("52-1");
  expect(addChanges(more, {}, [change("52-1")])).toBe(more);
});

test("what the stream tells while older changes are read stays", async () => {
  const client = new QueryClient();
  const call = vi.spyOn(api, "call");
  const answer = (id: string, next: string) =>
    ({ data: { entries: [change(id)], next }, revision: "50", etag: null, requestId: "" }) as never;
  call.mockResolvedValueOnce(answer("50-0", "50-0"));
  const observer = new InfiniteQueryObserver(client, auditQuery({}, 1));
  const leave = observer.subscribe(() => {});
  await vi.waitFor(() => expect(observer.getCurrentResult().hasNextPage).toBe(true));
  call.mockImplementationOnce(async () => {
    patchCache(client, [change("51-0", { kind: "webhook" })]);
    return answer("49-0", "");
  });
  await observer.fetchNextPage();
  const shown = observer.getCurrentResult().data?.pages.flatMap((page) => page.entries);
  expect(shown?.map((entry) => entry.id)).toEqual(["51-0", "50-0", "49-0"]);
  leave();
  vi.restoreAllMocks();
});
