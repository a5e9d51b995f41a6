import type { Term } from "./parse";

/** Compares versions part by part. With "=", a prefix is enough: 1.90 matches 1.90.8, but 1.9 does not match 1.90. */
export function comparesVersion(version: string, op: Term["op"], wanted: string): boolean {
  const own = version.split(/[.-]/).map(Number);
  const want = wanted.split(/[.-]/).map(Number);
  if (version === "" || want.some(Number.isNaN)) return false;
  let order = 0;
  for (let i = 0; i < want.length && order === 0; i++) order = (own[i] ?? 0) - (want[i] ?? 0);
  return holds(order, op);
}

const units: Record<string, number> = { m: 60e3, h: 3600e3, d: 864e5, w: 7 * 864e5, mo: 30 * 864e5, y: 365 * 864e5 };

/** Compares how long ago something was with a duration such as 30d; without an operator, at least that long. */
export function longerAgo(at: string | null, op: Term["op"], wanted: string, now: number): boolean {
  const [, count, unit] = /^(\d+)(m|h|d|w|mo|y)$/.exec(wanted) ?? [];
  if (!count || !unit) return false;
  const age = at === null ? Number.POSITIVE_INFINITY : now - Date.parse(at);
  return holds(age - Number(count) * (units[unit] ?? 0), op === "=" ? ">=" : op);
}

function holds(order: number, op: Term["op"]): boolean {
  switch (op) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    default:
      return order === 0;
  }
}

/** Whether a network contains an address or a smaller network, both IPv4 or both IPv6. */
export function prefixContains(network: string, inner: string): boolean {
  const a = bits(network);
  const b = bits(inner);
  return (
    a !== null &&
    b !== null &&
    a.width === b.width &&
    a.length <= b.length &&
    a.value >> BigInt(a.width - a.length) === b.value >> BigInt(a.width - a.length)
  );
}

function bits(text: string): { value: bigint; width: number; length: number } | null {
  const [address = "", size] = text.split("/");
  const v6 = address.includes(":");
  const value = v6 ? bits6(address) : bits4(address);
  const width = v6 ? 128 : 32;
  const length = size === undefined ? width : Number(size);
  return value === null || !(length >= 0 && length <= width) ? null : { value, width, length };
}

function bits4(text: string): bigint | null {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((p) => /^\d{1,3}$/.test(p) && Number(p) < 256)) return null;
  return parts.reduce((all, p) => (all << 8n) | BigInt(p), 0n);
}

function bits6(text: string): bigint | null {
  const [head = "", tail, more] = text.split("::");
  if (more !== undefined) return null;
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = 8 - left.length - right.length;
  if (tail === undefined ? zeros !== 0 : zeros < 1) return null;
  const parts = [...left, ...Array<string>(zeros).fill("0"), ...right];
  if (!parts.every((p) => /^[0-9a-f]{1,4}$/i.test(p))) return null;
  return parts.reduce((all, p) => (all << 16n) | BigInt(`0x${p}`), 0n);
}
