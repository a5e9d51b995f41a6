import type { Node, PolicyEffect } from "@/api";
import type { TestEntry } from "@/policy";
import { addressIn, destinationOf, firstPort, isInternet } from "@/policy/tests";
import { printable } from "@/text";
import { words } from "@/text/policy";
import { personOf } from "./names";

export type Shift = PolicyEffect["shifts"][number];
export type ShellShift = PolicyEffect["shells"][number];
export type RouteShift = PolicyEffect["routes"][number];
type Principals = Shift["from"];

/** "ana, goran +3". A principal with several tags is named by all of them. */
export function principalWords({ names, count }: Principals, most = 2): string {
  const all = names.length <= most + 1 && count === names.length;
  const shown = names.slice(0, all ? names.length : most).map((name) => printable(name, 80).replaceAll(", ", " "));
  const rest = count - shown.length;
  return shown.join(", ") + (rest > 0 ? ` +${rest.toLocaleString("en")}` : "");
}

/** The message of a failing test without its line, which is shown beside it. */
export const failureWords = (said: string) => printable(said.replace(/^(ssh )?test on line \d+: /i, ""), 600);

export interface Removal {
  /** Whether anything that was allowed no longer is. */
  any: boolean;
  /** The number of pairs that lose access; 0 if only SSH or routes are affected. */
  pairs: number;
  /** Whether there are more pairs than were counted. */
  more: boolean;
}

/** The access that an effect removes, also from pairs that keep some. */
export function removalOf(effect: PolicyEffect): Removal {
  const others = effect.shells.some((s) => s.lost.length > 0) || effect.routes.some((r) => r.lost.length > 0);
  return {
    any: effect.losing > 0 || others || effect.moreShells + effect.moreRoutes > 0 || effect.truncated,
    pairs: effect.losing,
    more: effect.truncated,
  };
}

/** Whether an effect changes nothing. */
export const changesNothing = (effect: PolicyEffect) =>
  effect.lost + effect.gained + effect.changed === 0 && effect.shells.length + effect.routes.length === 0;

export function saveWords(effect: PolicyEffect): string {
  const removal = removalOf(effect);
  if (!removal.any) return words.save.submit;
  if (removal.pairs === 0) return words.save.submitRemoveOther;
  return removal.more ? words.save.submitRemoveMore(removal.pairs) : words.save.submitRemove(removal.pairs);
}

export function shellWords(users: ShellShift["lost"]): string {
  return users.map(({ name, check }) => (check ? words.effect.shellCheck(name) : name)).join(", ");
}

/**
 * A test that pins a change: what is gained must stay reachable, what is lost must not come back. It names nodes as the
 * rules that cause the change do; `rules` is their text.
 */
export function testOf(shift: Shift, from: Node | undefined, to: Node | undefined, rules = ""): TestEntry | null {
  const source = from && endOf(from, rules);
  const target = to && endOf(to, rules);
  const kept = shift.lost.length === 0;
  const port = firstPort(kept ? shift.gained : shift.lost);
  if (!source || !target || !port) return null;
  return claim(source, target, port, kept);
}

function claim(src: string, target: string, port: { proto: string; number: number }, kept: boolean): TestEntry {
  const destination = [destinationOf(target, port.number)];
  const proto = port.proto === "tcp" ? {} : { proto: port.proto };
  return { src, ...proto, ...(kept ? { accept: destination } : { deny: destination }) };
}

/** The same for a network, represented by one of its addresses. */
export function routeTestOf({ from, prefix, lost, gained }: RouteShift, rules = ""): TestEntry | null {
  const name = from.names[0];
  const kept = lost.length === 0;
  const port = firstPort(kept ? gained : lost, isInternet(prefix) ? 443 : undefined);
  if (!name || !port) return null;
  // A principal with several tags is named by all of them.
  const source = name.startsWith("tag:") ? tagIn(name.split(", "), rules) : personOf(name);
  return source ? claim(source, addressIn(prefix), port, kept) : null;
}

/** The same for SSH: which users are accepted, need approval, or are denied. */
export function shellTestOf(
  shift: ShellShift,
  from: Node | undefined,
  to: Node | undefined,
  rules = "",
): TestEntry | null {
  const source = from && endOf(from, rules);
  const target = shift.own ? "autogroup:self" : to && endOf(to, rules);
  if (!source || !target) return null;
  // A test can only name single users, so any non-root user represents autogroup:nonroot.
  const names = (users: ShellShift["lost"]) =>
    users.map(({ name }) => (name === "autogroup:nonroot" ? "nobody" : name));
  const accept = names(shift.gained.filter(({ check }) => !check));
  const check = names(shift.gained.filter((user) => user.check));
  const deny = names(shift.lost).filter((name) => !accept.includes(name) && !check.includes(name));
  const claims = Object.entries({ accept, check, deny }).filter(([, users]) => users.length > 0);
  return claims.length > 0 ? { src: source, dst: [target], ...Object.fromEntries(claims) } : null;
}

/** The tag of a node that the rules name, or its first one. */
const tagIn = (tags: readonly string[], rules: string) =>
  tags.find((tag) => rules.includes(`"${tag}"`) || rules.includes(`"${tag}:`)) ?? tags[0];

/** The name of a node in a policy: a tag, or its owner. */
function endOf(node: Node, rules: string): string | null {
  if (node.tags.length > 0) return tagIn(node.tags, rules) ?? null;
  return node.user?.name ? personOf(node.user.name) : null;
}
