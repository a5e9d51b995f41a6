/** Adding a device: its kind, the steps on it, and waiting until it has joined. */
import { clsx } from "clsx";
import { Boxes, Laptop, type LucideIcon, Server } from "lucide-react";
import { type ReactNode, useCallback, useState } from "react";
import { type PreAuthKey, useCan } from "@/api";
import { oneOf, useSearchState } from "@/router/search";
import { text } from "@/text";
import { AskToDrop, Page, SecretGuard } from "@/ui";
import { Arrival } from "./Arrival";
import type { Kind, System } from "./join";
import { KeyStep } from "./KeyStep";
import { Steps } from "./Steps";

const t = text.device;
const icons: Record<Kind, LucideIcon> = { person: Laptop, server: Server, many: Boxes };

export function AddDevicePage() {
  const mayCreate = useCan()("preauthkeys:write");
  const [search, setSearch] = useSearchState({ kind: "person", os: "" });
  const kind = mayCreate ? oneOf<Kind>(search.kind, t.kinds, "person") : "person";
  const system = oneOf<System>(search.os, t.systems, kind === "person" ? "macos" : "linux");
  // The value of the key is held only here, and is lost when the page is left.
  const [made, setMade] = useState<PreAuthKey | null>(null);
  const [taken, setTaken] = useState(false);
  const take = useCallback(() => setTaken(true), []);
  const held = made !== null && !taken;
  const [wanted, setWanted] = useState<Kind | null>(null);
  const [round, setRound] = useState(0);
  const choose = (next: Kind) => {
    setWanted(null);
    setMade(null);
    setSearch({ kind: next });
  };
  const another = () => {
    setMade(null);
    setRound(round + 1);
  };
  let step = 0;
  return (
    <Page title={text.nodes.addTitle}>
      <div className="grid grid-cols-[minmax(0,1fr)_320px] items-start gap-6 max-lg:grid-cols-1">
        <div className="space-y-4">
          <Step number={++step} title={t.what}>
            <Kinds kind={kind} onKind={held ? setWanted : choose} only={mayCreate ? undefined : "person"} />
          </Step>
          {kind !== "person" && (
            <Step number={++step} title={t.key}>
              <KeyStep
                key={`${kind} ${round}`}
                kind={kind}
                made={made}
                onMade={(key) => {
                  setTaken(false);
                  setMade(key);
                }}
                onTaken={take}
              />
            </Step>
          )}
          <Step number={++step} title={t.steps}>
            <Steps
              system={system}
              onSystem={(os) => setSearch({ os })}
              keyValue={made?.key ?? ""}
              withKey={kind !== "person"}
              onTaken={take}
            />
          </Step>
        </div>
        <div className="sticky top-5 max-lg:static">
          <Arrival withKey={kind !== "person"} made={made} onJoined={take} onAnother={another} />
        </div>
      </div>
      {held && <SecretGuard takes={isElsewhere} />}
      {wanted && <AskToDrop onDrop={() => choose(wanted)} onKeep={() => setWanted(null)} />}
    </Page>
  );
}

/** Only leaving the page discards the key: kind and system are search parameters, so changing them keeps the path. */
const isElsewhere = (from: string, to: string) => from !== to;

function Step({ number, title, children }: { number: number; title: string; children: ReactNode }) {
  return (
    <section className="rounded-lg border border-line bg-surface p-5 max-md:p-4" aria-labelledby={`step-${number}`}>
      <h2 id={`step-${number}`} className="mb-4 flex items-center gap-2.5 text-14 font-semibold">
        <span
          className="grid size-6 place-items-center rounded-full bg-accent-soft text-12 text-accent-ink tabular-nums"
          aria-hidden
        >
          {number}
        </span>
        {title}
      </h2>
      {children}
    </section>
  );
}

function Kinds({ kind, onKind, only }: { kind: Kind; onKind(kind: Kind): void; only?: Kind }) {
  const kinds = (Object.keys(t.kinds) as Kind[]).filter((each) => !only || each === only);
  return (
    <>
      <fieldset className="grid grid-cols-3 gap-3 max-md:grid-cols-1">
        <legend className="sr-only">{t.what}</legend>
        {kinds.map((each) => {
          const Icon = icons[each];
          return (
            <label
              key={each}
              className={clsx(
                "relative flex cursor-pointer flex-col gap-1 rounded-lg border p-3 has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent",
                each === kind
                  ? "border-accent bg-picked shadow-[inset_0_0_0_1px_var(--accent)]"
                  : "border-line-strong hover:bg-canvas",
              )}
            >
              <input
                type="radio"
                name="kind"
                value={each}
                checked={each === kind}
                onChange={() => onKind(each)}
                aria-labelledby={`kind-${each}`}
                aria-describedby={`kind-${each}-about`}
                className="absolute inset-0 cursor-pointer opacity-0"
              />
              <span id={`kind-${each}`} className="flex items-center gap-2 font-medium">
                <Icon className={clsx("size-4", each === kind ? "text-accent" : "text-ink-3")} aria-hidden />
                {t.kinds[each].title}
              </span>
              <span id={`kind-${each}-about`} className="text-12 text-ink-2">
                {t.kinds[each].body}
              </span>
            </label>
          );
        })}
      </fieldset>
      {only && <p className="mt-3 text-12 text-ink-2">{t.onlyPerson}</p>}
    </>
  );
}
