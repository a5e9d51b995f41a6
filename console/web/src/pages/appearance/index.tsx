/** How the console looks and behaves in this browser. */
import { useId } from "react";
import { useSession } from "@/api";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { type Preferences, Switch, setPreference, usePreferences } from "@/ui";

export function AppearancePage() {
  const preferences = usePreferences();
  const t = text.settings;
  const { key } = useSession();
  return (
    <SettingsPage title={t.appearance}>
      <div className="max-w-[640px] divide-y divide-line rounded-lg border border-line bg-surface">
        <Choice name="theme" label={t.theme} choices={t.themes} value={preferences.theme} />
        <Choice name="density" label={t.density} choices={t.densities} value={preferences.density} />
        <Choice name="timeZone" label={t.timeZone} choices={t.timeZones} value={preferences.timeZone} />
        <OnOff name="singleKeys" label={t.singleKeys} hint={t.singleKeysHint} value={preferences.singleKeys} />
        {key.role !== "read" && (
          <OnOff name="nextSteps" label={t.nextSteps} hint={t.nextStepsHint} value={preferences.nextSteps} />
        )}
      </div>
      <p className="mt-3 text-12 text-ink-3">{t.stored}</p>
    </SettingsPage>
  );
}

function OnOff({
  name,
  label,
  hint,
  value,
}: {
  name: "singleKeys" | "nextSteps";
  label: string;
  hint: string;
  value: boolean;
}) {
  const id = useId();
  return (
    <div className="flex items-start gap-6 p-4">
      <div className="flex-1">
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        <p className="text-12 text-ink-2">{hint}</p>
      </div>
      <Switch id={id} checked={value} onChange={(on) => setPreference(name, on)} />
    </div>
  );
}

function Choice<K extends "theme" | "density" | "timeZone">({
  name,
  label,
  choices,
  value,
}: {
  name: K;
  label: string;
  choices: Record<Preferences[K], string>;
  value: Preferences[K];
}) {
  return (
    <fieldset className="flex items-center gap-6 p-4 max-md:flex-col max-md:items-start max-md:gap-2">
      <legend className="float-left flex-1 font-medium">{label}</legend>
      <div className="flex flex-wrap gap-x-5 gap-y-1">
        {(Object.keys(choices) as Preferences[K][]).map((key) => (
          <label key={key} className="flex h-6 items-center gap-2">
            <input
              type="radio"
              name={name}
              value={key}
              checked={value === key}
              onChange={() => setPreference(name, key)}
              className="size-4 accent-accent"
            />
            {choices[key]}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
