import { expect, test } from "vitest";
import type { PolicyEffect } from "@/api";
import { effectWords } from "./effect";

const principals = (...names: string[]) => ({ names, count: names.length });
const pair = (from: string, to: string) => ({ from: { id: from, name: from }, to: { id: to, name: to } });
const shift = (change: object) => ({ pairs: 2, lost: [], gained: [], samples: [], ...change });

test("the effect of tags is told from the side of the node", () => {
  const effect = {
    shifts: [
      shift({
        from: { names: ["ana", "ben", "cem", "dia"], count: 5 },
        to: principals("tag:web"),
        pairs: 12,
        gained: ["port 443"],
        samples: [pair("1", "7")],
      }),
      shift({
        from: principals("tag:web"),
        to: principals("tag:db"),
        gained: ["port 5432"],
        lost: ["port 22"],
        samples: [pair("7", "3")],
      }),
    ],
  } as unknown as PolicyEffect;
  expect(effectWords(effect, "7")).toEqual([
    { words: "12 nodes (ana, ben, cem, 2 others) gain access to this node: port 443", loss: false },
    { words: "This node gains access to 2 nodes (tag:db): port 5432", loss: false },
    { words: "This node loses access to 2 nodes (tag:db): port 22", loss: true },
  ]);
});
