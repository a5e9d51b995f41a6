import { useEffect, useMemo, useRef, useState } from "react";
import { ApiError, api, type PolicyEffect, useConnection } from "@/api";
import { type Found, syntaxProblems } from "./problems";

/** What is known about a text: its problems, and what it would change. */
export interface Verdict {
  problems: readonly Found[];
  /** For this text, or for the previous one while a check is in progress; null if unknown. */
  effect: PolicyEffect | null;
  /** Whether all of it is about the current text. */
  settled: boolean;
  /** Whether the effect has not been requested: with many nodes it takes a while, so it is computed only on request. */
  onRequest: boolean;
  error: unknown;
  /** Asks the server again, including for the effect. */
  ask(): void;
}

const pause = 400;
/** Above this number of nodes, the effect is shown only on request. */
export const manyNodes = 3000;

interface Answered {
  asked: string;
  problems: readonly Found[];
  effect: PolicyEffect | null;
  error: unknown;
}

/** Checks a text on the server when typing pauses. Problems that the browser finds itself are reported immediately. */
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
    // The selected viewer may have been deleted.
    if (viewer && error instanceof ApiError && error.status === 404) return look(policy, "", effect, signal);
    return { problems: [], effect: null, error };
  }
}
