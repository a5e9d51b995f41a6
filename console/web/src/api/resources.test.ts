import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ApiError, api } from "./client";
import { addPage, type Collection, replace } from "./collection";
import { isPart, keys, policyQuery, readAll, usersQuery, withPlainLines } from "./resources";
import { patchCache } from "./stream/live";
import type { Change, User } from "./types";

const user = (id: string, name: string) => ({ id, name }) as User;
const renamed = (at: string, id: string, name: string) =>
  ({ id: at, kind: "user", object: id, verb: "changed", before: null, after: user(id, name) }) as unknown as Change;

test.each([
  ["for the first time", undefined],
  ["again", addPage<User>(undefined, [user("1", "ana")], "90", true)],
])("what the stream tells while a list is read %s is in the list", async (_, old) => {
  const client = new QueryClient();
  if (old) client.setQueryData(keys.users, old);
  const read = async () => {
    // Something changes after the server has computed its response and before the response arrives.
    patchCache(client, [renamed("101-0", "1", "bea")]);
    return { data: { items: [user("1", "ana")] }, revision: "100", etag: null, requestId: "" };
  };
  const all: Collection<User> = await readAll<User>(client, keys.users, "user", replace, read);
  expect(all.items.map(({ name }) => name)).toEqual(["bea"]);
});

test("a policy has one kind of line end, as the editor's text has", () => {
  expect(withPlainLines({ version: "1", policy: "{\r\n  // a\r\n}\n" })).toEqual({
    version: "1",
    policy: "{\n  // a\n}\n",
  });
});

describe("a list whose second page does not come", () => {
  afterEach(() => void vi.restoreAllMocks());
  const answer = (users: User[], next: string) =>
    ({ data: { users, next }, revision: "100", etag: null, requestId: "" }) as never;
  const client = () => new QueryClient({ defaultOptions: { queries: { retry: false, gcTime: 60_000 } } });
  const names = (of: QueryClient) => of.getQueryData<Collection<User>>(keys.users)?.items.map(({ name }) => name);
  const held = (of: QueryClient) => {
    const query = of.getQueryCache().find({ queryKey: keys.users });
    if (!query) throw new Error("there is none");
    return query;
  };

  test("is reloaded for the next viewer if everyone has left", async () => {
    const cache = client();
    const call = vi.spyOn(api, "call");
    call.mockResolvedValueOnce(answer([user("1", "ana")], "c"));
    call.mockImplementationOnce(() => new Promise(() => {}));
    const leave = new QueryObserver(cache, usersQuery).subscribe(() => {});
    await vi.waitFor(() => expect(names(cache)).toEqual(["ana"]));
    expect(isPart(held(cache))).toBe(false);
    leave();
    expect(isPart(held(cache))).toBe(true);
    call.mockResolvedValueOnce(answer([user("1", "ana"), user("2", "bob")], ""));
    const again = new QueryObserver(cache, usersQuery).subscribe(() => {});
    await vi.waitFor(() => expect(names(cache)).toEqual(["ana", "bob"]));
    expect(isPart(held(cache))).toBe(false);
    again();
  });

  test("because it failed is known as a part, whatever the stream tells of it", async () => {
    const cache = client();
    const call = vi.spyOn(api, "call");
    call.mockResolvedValueOnce(answer([user("1", "ana")], "c"));
    call.mockRejectedValueOnce(new ApiError(500, "", "it broke", ""));
    const leave = new QueryObserver(cache, usersQuery).subscribe(() => {});
    await vi.waitFor(() => expect(isPart(held(cache))).toBe(true));
    patchCache(cache, [renamed("101-0", "1", "bea")]);
    expect(names(cache)).toEqual(["bea"]);
    expect(isPart(held(cache))).toBe(true);
    expect(cache.getQueryState(keys.users)?.error?.message).toBe("it broke");
    leave();
  });
});

test("a list that is out of date stays so when the stream tells something of it", () => {
  const client = new QueryClient();
  client.setQueryData(keys.users, addPage<User>(undefined, [user("1", "ana")], "90", true));
  void client.invalidateQueries();
  patchCache(client, [renamed("101-0", "1", "bea")]);
  expect(client.getQueryData<Collection<User>>(keys.users)?.items[0]?.name).toBe("bea");
  expect(client.getQueryState(keys.users)?.isInvalidated).toBe(true);
});

test("that there is no policy yet is a condition of the first", async () => {
  const [get, call] = [vi.spyOn(api, "get"), vi.spyOn(api, "call")];
  get.mockResolvedValueOnce({ versions: [] });
  expect(await new QueryClient().fetchQuery(policyQuery)).toEqual({ policy: null, etag: '"0"' });
  expect(call).not.toHaveBeenCalled();
  get.mockResolvedValueOnce({ versions: [{ version: "3" }] });
  call.mockRejectedValueOnce(new ApiError(404, "", "", "", {}, '"3"'));
  expect(await new QueryClient().fetchQuery(policyQuery)).toEqual({ policy: null, etag: '"3"' });
  vi.restoreAllMocks();
});
