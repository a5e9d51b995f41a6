import { expect, test } from "vitest";
import { takenBack, undone } from "./changes";
import { ApiError } from "./client";

interface Thing {
  givenName: string;
  online: boolean;
}
const thing = (some: Partial<Thing>): Thing => ({ givenName: "", online: true, ...some });

test("a write that failed is taken back, with what the stream told meanwhile left as it is", () => {
  const before = thing({ givenName: "old", online: true });
  const expected = { givenName: "new" };
  const dropped = { ...before, ...expected, online: false };
  expect(takenBack(dropped, expected, before)).toMatchObject({ givenName: "old", online: false });
  const renamed = { ...before, givenName: "theirs" };
  expect(takenBack(renamed, expected, before).givenName).toBe("theirs");
});

test("undo leaves what somebody else has set since", async () => {
  const sent: (string | null)[] = [];
  const refusing = (current: Thing) => async (ifMatch: string | null) => {
    sent.push(ifMatch);
    if (ifMatch) throw new ApiError(412, "", "", "", { current } as never);
  };
  const ours = (now: Thing) => now.givenName === "new";
  await expect(undone('"1"', refusing(thing({ givenName: "theirs" })), ours)).rejects.toThrow(ApiError);
  expect(sent).toEqual(['"1"']);
  await undone('"1"', refusing(thing({ givenName: "new", online: false })), ours);
  expect(sent).toEqual(['"1"', '"1"', null]);
});
