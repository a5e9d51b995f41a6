import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { apiKeysQuery, type Change, useCan } from "@/api";

/** The comment of the API key that made a change, which often names its owner; "" if there is none or it is unknown. */
export type KeyComments = (entry: Pick<Change, "actor">) => string;

export function useKeyComments(): KeyComments {
  const { data } = useQuery({ ...apiKeysQuery, enabled: useCan()("apikeys:read") });
  return useMemo(() => {
    const comments = new Map(
      data?.items.map(({ prefix, comment }) => [prefix.replace(/^flk_|_\*\*\*$/g, ""), comment]),
    );
    return ({ actor }) => (actor.kind === "key" && comments.get(actor.name)) || "";
  }, [data]);
}
