import { expect, test } from "vitest";
import type { Node } from "@/api";
import { type Tagging, taggingOf, tagsAfter, takenBackBy } from "./tagging";

const node = (...tags: string[]) => ({ tags }) as Node;

test.each<[string[], Tagging, string[], string[] | null]>([
  [["tag:b"], "addTags", ["tag:a", "tag:b"], ["tag:a", "tag:b"]],
  [["tag:a", "tag:b"], "removeTags", ["tag:a"], ["tag:b"]],
  [["tag:a"], "removeTags", ["tag:a"], null],
  [[], "removeTags", ["tag:a"], []],
  [["tag:a"], "setTags", ["tag:c"], ["tag:c"]],
])("%j %s %j becomes %j", (before, how, tags, after) => expect(tagsAfter(node(...before), how, tags)).toEqual(after));

test("a change of many says who changes, who is refused and who leaves a user", () => {
  const nodes = [node(), node("tag:a"), node("tag:a", "tag:b")];
  const added = taggingOf(nodes, "addTags", ["tag:a"]);
  expect([added.changed.length, added.refused, added.leaving]).toEqual([1, 0, 1]);
  const removed = taggingOf(nodes, "removeTags", ["tag:a"]);
  expect([removed.changed.length, removed.refused, removed.leaving]).toEqual([1, 1, 0]);
});

test("what is taken back are the tags that nodes had, unless somebody has changed them since", () => {
  const at = (id: string, ...tags: string[]) => ({ id, tags }) as Node;
  const before = [
    at("1", "tag:a"),
    at("2", "tag:b", "tag:a"),
    at("3", "tag:a"),
    at("4"),
    at("5", "tag:a"),
    at("6", "tag:a"),
  ];
  const { changed } = taggingOf(before, "addTags", ["tag:new"]);
  const after = new Map(changed.map(({ node, after }) => [node.id, at(node.id, ...(after ?? []))]));
  after.set("3", at("3", "tag:theirs"));
  after.set("5", at("5", "tag:a"));
  after.delete("6");
  const back = takenBackBy(changed, (id) => after.get(id));
  expect(back.map((nodes) => nodes.map(({ id }) => id))).toEqual([["1", "5"], ["2"]]);
});
