import { overviewWords } from "@/text/overview";
import { Mark, Time } from "@/ui";
import type { HealthLine } from "./health";

const t = overviewWords.health;
const marks = { pass: "on", warn: "warn", fail: "bad" } as const;

export const HealthList = ({ lines }: { lines: readonly HealthLine[] }) => (
  <ul className="py-1">
    {lines.map((line) => (
      <Line key={line.id} line={line} />
    ))}
  </ul>
);

function Line({ line }: { line: HealthLine }) {
  return (
    <li className="grid grid-cols-[8px_minmax(0,1fr)] gap-x-3 px-4 py-2">
      <span className="flex h-5 items-center">
        <Mark state={marks[line.status]} label={t.states[line.status]} />
      </span>
      <div>
        <div className="flex items-baseline justify-between gap-3">
          <span className="font-medium">{line.name}</span>
          {line.since && <Time at={line.since} className="text-12 text-ink-3" format={t.since} />}
        </div>
        <p className="text-12 break-words text-ink-2">{line.words}</p>
      </div>
    </li>
  );
}
