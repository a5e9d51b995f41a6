import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { CircleMinus, CirclePlus } from "lucide-react";
import { useEffect, useState } from "react";
import { ApiError, api, keys } from "@/api";
import { usePolicyTags } from "@/keys/policyTags";
import { printable, text } from "@/text";
import { effectWords } from "./effect";

const t = text.nodes.tagEffect;
const mostLines = 6;
/** Milliseconds without typing before the server is asked. */
const pause = 400;

/** A preview of what giving these tags to a node would change. */
export function TagEffect({ nodeId, tags }: { nodeId: string; tags: readonly string[] }) {
  const asked = usePaused(tags.join(" "));
  const policy = usePolicyTags();
  // The field already warns about tags without an owner, and the server would refuse them.
  const known = asked !== "" && asked.split(" ").every((tag) => policy?.known.includes(tag));
  const { data, error } = useQuery({
    queryKey: [...keys.policy, "retag", nodeId, asked],
    enabled: known,
    queryFn: async ({ signal }) =>
      (
        await api.call("post", "/api/v1/policy/preview", {
          body: { retag: { nodes: [nodeId], tags: asked.split(" ") } },
          signal,
        })
      ).data,
    placeholderData: keepPreviousData,
    gcTime: 0,
    retry: false,
  });
  // Show why the server would refuse the tags.
  if (error instanceof ApiError && !error.unreachable)
    return <p className="text-12 text-warn">{printable(error.detail, 400)}</p>;
  if (!data || !known) return null;
  const lines = effectWords(data, nodeId);
  return (
    <div className="space-y-1.5" aria-live="polite">
      <p className="font-medium text-ink">{t.title}</p>
      {lines.length === 0 && <p>{t.none}</p>}
      <ul className="space-y-1">
        {lines.slice(0, mostLines).map(({ words, loss }) => (
          <li key={words} className="flex gap-2 break-words">
            {loss ? (
              <CircleMinus className="mt-0.5 size-4 shrink-0 text-bad" aria-hidden />
            ) : (
              <CirclePlus className="mt-0.5 size-4 shrink-0 text-ok" aria-hidden />
            )}
            <span className="min-w-0">{words}</span>
          </li>
        ))}
      </ul>
      {lines.length > mostLines && <p>{text.nodes.many.more(lines.length - mostLines)}</p>}
      {data.shells.length > 0 && <p>{t.shells}</p>}
      {data.routes.length > 0 && <p>{t.routes}</p>}
    </div>
  );
}

function usePaused(value: string): string {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), pause);
    return () => clearTimeout(timer);
  }, [value]);
  return paused;
}
