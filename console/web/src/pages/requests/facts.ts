import type { PendingLogin } from "@/api";
import { printable } from "@/text";
import { requestWords } from "@/text/requests";

/** The hostname that a device reports; it is not verified. */
export const deviceName = (login: Pick<PendingLogin, "hostname">) =>
  printable(login.hostname, 60) || requestWords.devices.unnamed;

export const rowShape =
  "flex items-center gap-4 border-b border-hair px-4 py-3 last:border-b-0 max-sm:flex-col max-sm:items-stretch max-sm:gap-3";

/** Sorts objects by age. */
export const created = (a: { createdAt: string | null }, b: { createdAt: string | null }) =>
  Date.parse(a.createdAt ?? "") - Date.parse(b.createdAt ?? "");

/** Sorts users by how long their suspension has been held. */
export const heldFirst = (a: { suspensionHeldAt?: string }, b: { suspensionHeldAt?: string }) =>
  Date.parse(a.suspensionHeldAt ?? "") - Date.parse(b.suspensionHeldAt ?? "");

/** Sorts requests by age. New ones are added at the end, so that nothing moves under the pointer. */
export function oldestFirst<T extends { since: string }>(all: readonly T[] | undefined): T[] {
  return [...(all ?? [])].sort((a, b) => Date.parse(a.since) - Date.parse(b.since));
}
