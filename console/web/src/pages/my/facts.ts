import type { Node, PreAuthKey } from "@/api";
import { keyState } from "@/keys/facts";
import { byName } from "@/nodes";

/** The devices of a person, by name. Tagged nodes belong to their tags. */
export const devicesOf = (nodes: readonly Node[], person: string): Node[] =>
  nodes.filter((node) => node.tags.length === 0 && node.user?.name === person).sort(byName);

/** The usable pre-auth keys for devices of a person, those that expire first at the top. */
export const keysOf = (keys: readonly PreAuthKey[], person: string, now: number): PreAuthKey[] =>
  keys
    .filter((key) => key.aclTags.length === 0 && key.user?.name === person && keyState(key, now) === "usable")
    .sort((a, b) => Date.parse(a.expiration) - Date.parse(b.expiration));
