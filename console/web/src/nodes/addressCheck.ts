import type { Node } from "@/api";
import { prefixContains } from "@/filter";
import { printable } from "@/text";
import { addresses as t } from "@/text/ownership";

type Family = "IPv4" | "IPv6";

/** The family of an address; undefined for any other text, such as a network. */
export function addressFamily(text: string): Family | undefined {
  if (/[/%]/.test(text) || !sameAddress(text, text)) return undefined;
  return text.includes(":") ? "IPv6" : "IPv4";
}

/** Whether two texts are the same address, however it is written. */
const sameAddress = (a: string, b: string) => prefixContains(a, b);

/**
 * What is wrong with a typed address, before the server is asked. If `required`, the address can be changed, but not
 * removed.
 */
export function addressProblem(
  typed: string,
  family: Family,
  required: boolean,
  others: readonly Pick<Node, "givenName" | "ipAddresses">[],
): string | undefined {
  if (typed === "" && !required) return undefined;
  if (addressFamily(typed) !== family) return t.bad(family);
  const holder = others.find((node) => node.ipAddresses.some((each) => sameAddress(each, typed)));
  return holder && t.taken(printable(holder.givenName));
}
