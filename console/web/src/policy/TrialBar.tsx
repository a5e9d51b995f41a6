import { useQueryClient } from "@tanstack/react-query";
import { Timer } from "lucide-react";
import { useEffect, useState } from "react";
import { api, keys, policyQuery, useCan } from "@/api";
import { text } from "@/text";
import { trial as t } from "@/text/en/trial";
import { ApiSteps, clock, usePreferences, useStatus, WriteButton } from "@/ui";
import { authorWords } from "./author";
import { countdown } from "./countdown";

/** Counts down until a version reverts, for everyone who is signed in, with buttons to keep or revert it. */
export default function TrialBar({ version, until, author }: { version: string; until: string; author: string }) {
  const { timeZone } = usePreferences();
  const left = useSecondsUntil(Date.parse(until));
  const { busy, end } = useEnd(version);
  const may = useCan()("policy:write");
  return (
    <section
      aria-label={t.label}
      className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line bg-warn-soft px-6 py-2 text-13 text-warn max-md:px-4"
    >
      <Timer className="size-4 shrink-0" aria-hidden />
      <p className="min-w-0 flex-1 basis-60">
        <span role="status">
          {t.says(version, authorWords(author, text.policy.key), clock(Date.parse(until), timeZone))}
        </span>
      </p>
      {may && (
        <ApiSteps
          steps={[
            { title: t.revert, ...call("revert", version) },
            { title: t.keep(version), ...call("confirm", version) },
          ]}
        />
      )}
      <span className="shrink-0 font-mono text-14 font-semibold tabular-nums" aria-hidden>
        {countdown(left)}
      </span>
      <span className="flex shrink-0 gap-2">
        <WriteButton right="policy:write" className="text-ink!" disabled={busy} onClick={() => void end("revert")}>
          {t.revert}
        </WriteButton>
        <WriteButton right="policy:write" look="primary" disabled={busy} onClick={() => void end("confirm")}>
          {t.keep(version)}
        </WriteButton>
      </span>
    </section>
  );
}

/** The call that ends the trial; it fails if another version is in force by then. */
const call = (how: "confirm" | "revert", version: string) => ({
  method: "post" as const,
  path: `/api/v1/policy/${how}`,
  ifMatch: `"${version}"`,
});

function useSecondsUntil(moment: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return Math.max(0, Math.ceil((moment - now) / 1000));
}

function useEnd(version: string) {
  const client = useQueryClient();
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const end = async (how: "confirm" | "revert") => {
    setBusy(true);
    try {
      // Check the version, so that nobody confirms or reverts one that they have not seen.
      const { policy, etag } = await client.fetchQuery({ ...policyQuery, staleTime: 0 });
      if (policy?.version !== version) return status.failed(t.failed(version), t.another);
      await api.call("post", `/api/v1/policy/${how}`, { ifMatch: etag });
      status.done(how === "confirm" ? t.kept(version) : t.reverted(version));
    } catch (error) {
      status.failed(t.failed(version), error);
    } finally {
      setBusy(false);
      void client.invalidateQueries({ queryKey: keys.policy });
    }
  };
  return { busy, end };
}
