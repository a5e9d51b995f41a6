import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type AccessRow, accessQuery, rowsOf, withComments } from "@/access";
import { type AccessMap, type AccessQuestion, ApiError, useCan, usePolicy } from "@/api";
import { useDraft } from "@/policy";

export type Detail = NonNullable<AccessQuestion["by"]>;

/** The text of the unsaved draft, if it differs from the policy in force. */
export function useDraftText(): string | undefined {
  const draft = useDraft();
  const { data } = usePolicy();
  return draft && data && draft.text !== (data.policy?.policy ?? "") ? draft.text : undefined;
}

/** The map, according to the draft if there is a valid one. */
export function useMap(by: Detail, draft: string | undefined) {
  const may = useCan()("policy:read");
  const drafted = useQuery({ ...accessQuery({ by, policy: draft }), enabled: may && draft !== undefined });
  const broken = draft !== undefined && drafted.error instanceof ApiError && drafted.error.status === 400;
  const plain = useQuery({ ...accessQuery({ by }), enabled: may && (draft === undefined || broken) });
  const used = draft !== undefined && !broken ? drafted : plain;
  const { data: policy } = usePolicy();
  const inForce = policy?.policy?.policy ?? "";
  const text = broken ? undefined : draft;
  const map = useMemo(
    () => used.data && withComments(withoutIdle(used.data), inForce, text),
    [used.data, inForce, text],
  );
  const rows = useMemo(() => (map ? rowsOf(map) : []), [map]);
  return {
    map,
    rows,
    /** The text that the map is based on; undefined for the policy in force. */
    draft: text,
    broken: broken ? (drafted.error as ApiError) : undefined,
    error: used.data ? null : used.error,
    /** Whether the map is based on this text, rather than on the previous one while a request is in progress. */
    answered: used.data !== undefined && !used.isPlaceholderData,
    retry: () => void used.refetch(),
  };
}

/** What a node can reach and who can reach it, as rows of one map. */
export function useNodeRows(node: string, draft: string | undefined): AccessRow[] | undefined {
  const { data: policy } = usePolicy();
  const asked = { enabled: node !== "" };
  const { data: out } = useQuery({ ...accessQuery({ from: [node], policy: draft }), ...asked });
  const { data: back } = useQuery({ ...accessQuery({ to: [node], policy: draft }), ...asked });
  const inForce = policy?.policy?.policy ?? "";
  return useMemo(() => {
    if (!out || !back) return undefined;
    return [out, back].flatMap((map) => rowsOf(withComments(map, inForce, draft)));
  }, [out, back, inForce, draft]);
}

/**
 * A map without the networks among its sources that have no access to anything: most networks are only destinations.
 */
export function withoutIdle(map: AccessMap): AccessMap {
  const busy = new Set(map.cells.map((cell) => cell.from));
  const places = new Map<number, number>();
  const from = map.from.filter((principal, i) => {
    const keep = busy.has(i) || (principal.kind !== "route" && principal.kind !== "internet");
    if (keep) places.set(i, places.size);
    return keep;
  });
  return { ...map, from, cells: map.cells.map((cell) => ({ ...cell, from: places.get(cell.from) ?? 0 })) };
}
