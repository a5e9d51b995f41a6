import { useQuery } from "@tanstack/react-query";
import { type PolicyVersion, useNodes } from "@/api";
import { words } from "@/text/policy";
import { Badge } from "@/ui";
import { diffSize, stepQuery } from "./steps";

const t = words.history;

export function Standing({ version, inForce }: { version: PolicyVersion; inForce: string | undefined }) {
  return (
    <>
      {version.version === inForce && (
        <Badge tone={version.confirmBy ? "warn" : "ok"}>{version.confirmBy ? t.onTrial : t.inForce}</Badge>
      )}
      {version.source === "file" && <Badge>{t.file}</Badge>}
    </>
  );
}

/** Gains and losses, by sign and colour, and in words for screen readers. */
function PlusMinus({ plus, minus, says }: { plus: number; minus: number; says: [string, string] }) {
  if (plus + minus === 0) return <span className="text-ink-3">{t.same}</span>;
  return (
    <span className="flex gap-2 tabular-nums">
      {plus > 0 && (
        <span className="text-ok">
          <span aria-hidden>{t.plus(plus)}</span>
          <span className="sr-only">{says[0]}</span>
        </span>
      )}
      {minus > 0 && (
        <span className="text-bad">
          <span aria-hidden>{t.minus(minus)}</span>
          <span className="sr-only">{says[1]}</span>
        </span>
      )}
    </span>
  );
}

/** Above this number of nodes, the effect is not requested for every visible version. */
const manyNodes = 3000;

export function useStep(version: string, from?: string) {
  const { data: nodes } = useNodes();
  return useQuery(stepQuery(version, (nodes?.items.length ?? 0) <= manyNodes, from));
}

export function Lines({ version }: { version: string }) {
  const { data } = useStep(version);
  if (!data) return null;
  const { added, removed } = diffSize(data.diff);
  return <PlusMinus plus={added} minus={removed} says={[t.plusLines(added), t.minusLines(removed)]} />;
}

export function Pairs({ version }: { version: string }) {
  const { data } = useStep(version);
  if (!data) return null;
  if (!data.effect) return <span className="text-ink-3">{t.unknown}</span>;
  const { gaining, losing } = data.effect;
  return <PlusMinus plus={gaining} minus={losing} says={[t.plusPairs(gaining), t.minusPairs(losing)]} />;
}
