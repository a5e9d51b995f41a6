import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { addPage, type Collection, replace } from "./collection";
import { keys, readAll, withPlainLines } from "./resources";
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
    // The server has read its answer, and something happens before it is here.
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
