import { clsx } from "clsx";
import type { ReactNode } from "react";
import { ChangeSign } from "@/access";
import { accessView } from "@/text/access";

const t = accessView.legend;

/** What the colours and numbers of a drawing mean. */
export function Legend({ view, draft, children }: { view: "matrix" | "flow"; draft: boolean; children?: ReactNode }) {
  return (
    <section
      aria-label={t.title}
      className="flex shrink-0 flex-wrap items-center gap-x-5 gap-y-1 border-t border-line bg-canvas px-6 py-2 text-12 text-ink-2"
    >
      {view === "matrix" ? (
        <>
          <Item sign={<Swatch className="bg-accent-soft border-accent" />}>{t.all}</Item>
          <Item sign={<Swatch className="border-line-strong bg-chip" />}>{t.some}</Item>
          <Item sign={<Swatch className="border-line bg-surface" />}>{t.none}</Item>
        </>
      ) : (
        <>
          <Item
            sign={
              <span className="flex w-5 flex-col gap-1" aria-hidden>
                <span className="h-px bg-accent" />
                <span className="h-1 rounded bg-accent opacity-40" />
              </span>
            }
          >
            {t.path}
          </Item>
          <span>{t.nodes}</span>
        </>
      )}
      {draft &&
        (["gained", "lost", "changed"] as const).map((change) => (
          <Item key={change} sign={<ChangeSign change={change} />}>
            {t[change]}
          </Item>
        ))}
      {view === "matrix" && <span>{t.matrixPairs}</span>}
      {view === "matrix" && <span>{t.severalTags}</span>}
      {children}
    </section>
  );
}

const Item = ({ sign, children }: { sign: ReactNode; children: ReactNode }) => (
  <span className="inline-flex items-center gap-1.5">
    {sign}
    {children}
  </span>
);

const Swatch = ({ className }: { className: string }) => (
  <span className={clsx("size-3.5 rounded border", className)} aria-hidden />
);
