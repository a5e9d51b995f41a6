import { type ReactNode, useId, useState } from "react";
import { useSession } from "@/api";
import { onlyHere } from "@/keys";
import { text } from "@/text";
import { Checkbox, Command, Field, FoldButton, Input, Tabs, useFold, Warning } from "@/ui";
import { type Computer, type JoinOptions, joinLine, notAPrefix, type System } from "./join";
import { Qr } from "./Qr";

const t = text.device;
const systems = Object.keys(t.systems) as System[];
const isPhone = (system: System) => system === "ios" || system === "android";

/** The steps on the device, for each system. */
export function Steps({
  system,
  onSystem,
  keyValue,
  withKey,
  onTaken,
}: {
  system: System;
  onSystem(system: System): void;
  /** Empty until the key exists. */
  keyValue: string;
  withKey: boolean;
  /** Called when the command, which contains the key, has been copied. */
  onTaken(): void;
}) {
  const panel = useId();
  const [options, setOptions] = useState<JoinOptions>({ hostname: "", routes: "", exit: false, ssh: false });
  const { coordinator } = useSession();
  const computer = isPhone(system) ? null : (system as Computer);
  return (
    <>
      <div className="flex border-b border-line">
        <Tabs
          label={t.systemsLabel}
          tabs={systems.map((value) => ({ value, label: t.systems[value] }))}
          value={system}
          onChange={onSystem}
          panel={panel}
        />
      </div>
      <div id={panel} role="tabpanel" aria-labelledby={`${panel}-${system}`} className="pt-4">
        {onlyHere(coordinator.url) && <Warning className="mb-3">{t.onlyHere(coordinator.url)}</Warning>}
        {withKey && !keyValue && <p className="mb-3 text-ink-2">{t.keyFirst}</p>}
        {computer ? (
          <ol className="list-decimal space-y-3 pl-5 marker:text-ink-3">
            <li>{t.install[computer]}</li>
            <li>
              <p className="mb-2">{t.run[computer]}</p>
              <Command
                value={joinLine(computer, coordinator.url, withKey ? keyValue || "…" : "", options)}
                what={t.command}
                incomplete={withKey && !keyValue}
                onCopied={onTaken}
              />
            </li>
            {!withKey && <li>{t.follow}</li>}
            {!withKey && <li>{t.approve}</li>}
          </ol>
        ) : (
          <Phone system={system as "ios" | "android"} withKey={withKey} />
        )}
        {computer && <Advanced options={options} onChange={setOptions} />}
      </div>
    </>
  );
}

function Phone({ system, withKey }: { system: "ios" | "android"; withKey: boolean }) {
  const { coordinator } = useSession();
  const guide = `${coordinator.url}/${system === "ios" ? "apple" : "android"}`;
  if (withKey && system === "ios") return <p className="text-ink-2">{t.iosKey}</p>;
  const [first, second, last] = t.phone[system];
  return (
    <div className="flex gap-6 max-md:flex-col">
      <ol className="min-w-0 flex-1 list-decimal space-y-3 pl-5 marker:text-ink-3">
        <li>{t.install[system]}</li>
        <li>{first}</li>
        <li>
          <p className="mb-2">{second}</p>
          <Command value={coordinator.url} what={t.address} />
        </li>
        {withKey ? <li>{t.androidKey}</li> : <li>{last}</li>}
        {!withKey && <li>{t.approve}</li>}
      </ol>
      <figure className="w-40 shrink-0">
        <Qr value={guide} label={t.qrAlt(guide)} />
        <figcaption className="mt-2 text-12 text-ink-2">{t.qr}</figcaption>
      </figure>
    </div>
  );
}

function Advanced({ options, onChange }: { options: JoinOptions; onChange(options: JoinOptions): void }) {
  const fold = useFold();
  const bad = notAPrefix(options.routes);
  const set = (change: Partial<JoinOptions>) => onChange({ ...options, ...change });
  return (
    <div className="mt-4">
      <FoldButton fold={fold} className="-ml-2 h-8 rounded-md px-2 font-medium hover:bg-sunken">
        {t.advanced}
      </FoldButton>
      {fold.open && (
        <div id={fold.id} className="mt-2 space-y-4">
          <Pair>
            <Field label={t.hostname} hint={t.hostnameHint}>
              {(control) => (
                <Input
                  {...control}
                  mono
                  value={options.hostname}
                  onChange={(event) => set({ hostname: event.target.value })}
                />
              )}
            </Field>
            <Field label={t.routes} hint={t.routesHint} error={bad && t.routesBad(bad)}>
              {(control) => (
                <Input
                  {...control}
                  mono
                  value={options.routes}
                  onChange={(event) => set({ routes: event.target.value })}
                />
              )}
            </Field>
          </Pair>
          <Pair>
            <Checkbox label={t.exit} checked={options.exit} onChange={(exit) => set({ exit })} />
            <Checkbox label={t.ssh} checked={options.ssh} onChange={(ssh) => set({ ssh })} />
          </Pair>
        </div>
      )}
    </div>
  );
}

const Pair = ({ children }: { children: ReactNode }) => (
  <div className="grid grid-cols-2 gap-4 max-md:grid-cols-1">{children}</div>
);
