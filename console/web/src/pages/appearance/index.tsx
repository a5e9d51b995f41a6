/** How the console looks and behaves in this browser. */
import { useId } from "react";
import { SettingsPage } from "@/pages/settings";
import { text } from "@/text";
import { type Preferences, Switch, setPreference, usePreferences } from "@/ui";

export function AppearancePage() {
  const preferences = usePreferences();
  const t = text.settings;
  const keysId = useId();
  return (
    <SettingsPage title={t.appearance}>
      <div className="max-w-[640px] divide-y divide-line rounded-lg border border-line bg-surface">
        <Choice name="theme" label={t.theme} choices={t.themes} value={preferences.theme} />
        <Choice name="density" label={t.density} choices={t.densities} value={preferences.density} />
        <Choice name="timeZone" label={t.timeZone} choices={t.timeZones} value={preferences.timeZone} />
        <div className="flex items-start gap-6 p-4">
          <div className="flex-1">
            <label htmlFor={keysId} className="font-medium">
              {t.singleKeys}
            </label>
            <p className="text-12 text-ink-2">{t.singleKeysHint}</p>
          </div>
          <Switch id={keysId} checked={preferences.singleKeys} onChange={(on) => setPreference("singleKeys", on)} />
        </div>
      </div>
      <p className="mt-3 text-12 text-ink-3">{t.stored}</p>
    </SettingsPage>
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
