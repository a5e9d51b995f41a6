import { useEffect, useMemo, useRef, useState } from "react";
import { ApiError, api, type PolicyEffect, useConnection } from "@/api";
import { type Found, syntaxProblems } from "./problems";

/** What is known of a text: what is wrong with it, and what it would change. */
export interface Verdict {
  problems: readonly Found[];
  /** Of this text, or while it is being looked at of the one before; null when none is known. */
  effect: PolicyEffect | null;
  /** Nothing of it is of an earlier text. */
  settled: boolean;
  /** The server was not asked what changes: it has many nodes, and this takes a while. */
  onRequest: boolean;
  error: unknown;
  /** Asks the server again, and for the effect. */
  ask(): void;
}

const pause = 400;
/** Above this the effect is shown when it is asked for. */
export const manyNodes = 3000;

interface Answered {
  asked: string;
  problems: readonly Found[];
  effect: PolicyEffect | null;
  error: unknown;
}

/** Asks the server about a text when typing pauses. What the browser finds wrong itself is there at once. */
export function useVerdict(text: string, version: string, viewer: string, nodes: number): Verdict {
  const syntax = useMemo(() => syntaxProblems(text), [text]);
  const [answered, setAnswered] = useState<Answered | null>(null);
  const [request, setRequest] = useState({ count: 0, text: "" });
  const { name: connection } = useConnection();
  const wanted = nodes <= manyNodes || request.text === text;
  const key = JSON.stringify([text, version, viewer, wanted, request.count, connection === "offline"]);
  const first = useRef(true);
  const broken = syntax.length > 0;
  useEffect(() => {
    if (broken) return;
    const aborted = new AbortController();
    const timer = setTimeout(
      async () => {
        const found = await look(text, viewer, wanted, aborted.signal);
        if (!aborted.signal.aborted) setAnswered({ ...found, asked: key });
      },
      first.current ? 0 : pause,
    );
    first.current = false;
    return () => {
      clearTimeout(timer);
      aborted.abort();
    };
  }, [text, viewer, wanted, broken, key]);
  const fresh = answered?.asked === key;
  return {
    problems: broken ? syntax : (answered?.problems ?? []),
    effect: answered?.effect ?? null,
    settled: broken || fresh,
    onRequest: !wanted,
    error: fresh ? answered.error : null,
    ask: () => setRequest(({ count }) => ({ count: count + 1, text })),
  };
}

async function look(
  policy: string,
  viewer: string,
  effect: boolean,
  signal: AbortSignal,
): Promise<Omit<Answered, "asked">> {
  try {
    if (!effect) {
      await api.call("post", "/api/v1/policy/check", { body: { policy }, signal });
      return { problems: [], effect: null, error: null };
    }
    const body = viewer ? { policy, viewer } : { policy };
    const { data } = await api.call("post", "/api/v1/policy/preview", { body, signal });
    return { problems: [], effect: data, error: null };
  } catch (error) {
    const problems = error instanceof ApiError ? error.problem.problems : undefined;
    if (problems?.length) return { problems, effect: null, error: null };
    // Who was chosen as the viewer may be gone since.
    if (viewer && error instanceof ApiError && error.status === 404) return look(policy, "", effect, signal);
    return { problems: [], effect: null, error };
  }
}
