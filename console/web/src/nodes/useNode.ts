import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ApiError, type Node, nodeQuery, useNodes } from "@/api";

/** What a device reports about itself causes no event, so it is refetched at this interval. */
const askAgain = 60_000;

/**
 * One node as it is now: from the list and the stream, with what its device reports about itself. A node that is
 * deleted in the meantime is kept as it was.
 */
export function useNode(id: string) {
  const one = useQuery({
    ...nodeQuery(id),
    refetchInterval: ({ state }) => (isMissing(state.error) ? false : askAgain),
  });
  const { data: all } = useNodes();
  const live = all?.items.find((node) => node.id === id);
  const read = one.data?.data.node;
  const node = useMemo(
    (): Node | undefined => (live ? { ...live, host: read?.host ?? live.host } : read),
    [live, read],
  );
  const gone = isMissing(one.error);
  return {
    node,
    deleted: gone && node !== undefined,
    missing: gone && node === undefined,
    error: node ? null : one.error,
    retry: () => void one.refetch(),
  };
}

const isMissing = (error: unknown) => error instanceof ApiError && error.status === 404;
