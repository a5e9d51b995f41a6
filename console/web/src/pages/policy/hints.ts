import { words } from "@/text/policy";
import type { Document } from "./document";
import { fits, type Network, nameIn, nodesOf } from "./names";
import type { Found } from "./problems";

/** With more rules than this, pairs of rules are not compared while the user types. */
const mostRules = 500;

/** What is valid but probably unintended: rules without effect, and unknown people. */
export function hintsOf(document: Document, network: Network): Found[] {
  if (network.nodes.length === 0) return [];
  const found: Found[] = [];
  const hint = (line: number, text: string, column = 0) => found.push({ line, column, text });
  for (const list of document.rules.length <= mostRules ? ["acls", "grants"] : []) {
    const rules = document.rules.filter((rule) => rule.list === list);
    for (const [index, rule] of rules.entries()) {
      const cover = rules.slice(0, index).find((earlier) => covers(earlier, rule));
      if (cover) hint(rule.line, words.hints.covered(cover.line));
      else if (meansNobody(rule.src, document, network)) hint(rule.line, words.hints.noSource(rule.src.join(", ")));
      else if (meansNobody(rule.dst, document, network)) hint(rule.line, words.hints.noTarget(rule.dst.join(", ")));
    }
  }
  if (network.users.length > 0) {
    for (const { text, line, column } of document.people) {
      const name = nameIn(text);
      if (!network.users.some((user) => fits(user, name))) hint(line, words.hints.stranger(name), column);
    }
  }
  return found.sort((a, b) => a.line - b.line || a.column - b.column);
}

type Rule = Document["rules"][number];

/** Whether the text of a rule is enough to show that it allows everything that the other does. */
function covers(one: Rule, other: Rule): boolean {
  const all = (part: readonly string[], whole: readonly string[], any: string) =>
    whole.includes(any) || part.every((name) => whole.includes(name));
  // A rule that cannot be parsed covers nothing and is covered by nothing.
  if (![one, other].every((rule) => rule.src.length > 0 && rule.dst.length > 0)) return false;
  const wide = one.list === "grants" ? one.proto === "*" : one.proto === "";
  if (!wide && one.proto !== other.proto) return false;
  // What autogroup:self means depends on the source, so comparing the names is not enough.
  if (
    one.dst.some((name) => name.startsWith("autogroup:self")) !==
    other.dst.some((name) => name.startsWith("autogroup:self"))
  )
    return false;
  return all(other.src, one.src, "*") && all(other.dst, one.dst, one.list === "grants" ? "*" : "*:*");
}

/** Whether all names are known, and match no existing node. */
function meansNobody(names: readonly string[], document: Document, network: Network): boolean {
  return names.length > 0 && names.every((name) => nodesOf(nameIn(name), document, network)?.length === 0);
}
