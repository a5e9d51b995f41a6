import { expect, it } from "vitest";
import type { Node, User } from "@/api";
import { readDocument } from "./document";
import { hintsOf } from "./hints";

const network = {
  nodes: [
    { tags: ["tag:db"], online: true },
    { tags: [], user: { name: "ana" }, online: true },
  ] as unknown as Node[],
  users: [{ name: "ana" }] as User[],
};

/** The lines of the hints and what they say before the colon, for rules that start on line 3, one per line. */
const hints = (rules: string[], list = "acls") =>
  hintsOf(readDocument(`{\n"${list}": [\n${rules.join(",\n")}\n]}`), network).map(
    ({ line, text }) => `${line} ${text.split(":")[0]}`,
  );
const rule = (src: string, dst: string, more = "") => `{"src": ["${src}"], "dst": ["${dst}"]${more}}`;

it("says nothing of rules that mean somebody", () => {
  expect(hints([rule("ana@", "tag:db:22"), rule("tag:db", "*:*"), rule("10.0.0.1", "office:80")])).toEqual([]);
});

it("finds rules without anybody to reach or to be reached", () => {
  expect(hints([rule("tag:gone", "tag:db:22"), rule("ana@", "tag:gone:22")])).toEqual(["3 No effect", "4 No effect"]);
});

it("finds rules that an earlier one covers", () => {
  expect(hints([rule("*", "tag:db:22"), rule("ana@", "tag:db:22")])).toEqual(["4 Redundant"]);
  expect(hints([rule("ana@", "*:*"), rule("ana@", "tag:db:22", ', "proto": "udp"')])).toEqual(["4 Redundant"]);
  expect(hints([rule("ana@", "*:*", ', "proto": "udp"'), rule("ana@", "tag:db:22")])).toEqual([]);
  expect(hints([rule("ana@", "*:*"), rule("ana@", "autogroup:self:22")])).toEqual([]);
  expect(hints([rule("ana@", "*", ', "ip": ["22"]'), rule("ana@", "tag:db", ', "ip": ["*"]')], "grants")).toEqual([]);
});

it("finds people whom nobody knows", () => {
  const text = '{"groups": {"group:a": ["ana@", "cem@"]}, "acls": []}';
  expect(hintsOf(readDocument(text), network)).toEqual([
    { line: 1, column: text.indexOf('"cem') + 1, text: "There is no user cem@ yet" },
  ]);
});

it("is silent while the network is not known", () => {
  expect(hintsOf(readDocument(`{"acls": [${rule("tag:gone", "*:*")}]}`), { nodes: [], users: [] })).toEqual([]);
});
