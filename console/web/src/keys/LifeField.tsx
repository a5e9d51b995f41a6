import { useId } from "react";
import { text } from "@/text";
import { announce, Choices, Input, Select, useNow, usePreferences } from "@/ui";
import { endOf, type Life, momentWords, type Unit } from "./life";

/** The lifetime of a key, with the time at which it expires. */
export function LifeField({
  choices,
  value,
  onChange,
}: {
  choices: Record<string, string>;
  value: Life;
  onChange(life: Life): void;
}) {
  const t = text.keys.life;
  const now = useNow();
  const { timeZone } = usePreferences();
  const end = endOf(value, now);
  const id = useId();
  const words = (at: number | null) => (at === null ? t.bad : t.ends(momentWords(at, now, timeZone)));
  // Announce changes here instead of using a live region, because the text also changes every minute.
  const change = (life: Life) => {
    onChange(life);
    announce(words(endOf(life, now)));
  };
  return (
    <div className="space-y-2">
      <Choices
        label={t.label}
        choices={{ ...choices, custom: t.custom }}
        value={value.choice}
        onChange={(choice) => change({ ...value, choice })}
      />
      {value.choice === "custom" && (
        <div className="flex gap-2">
          <Input
            aria-label={t.count}
            aria-invalid={end === null || undefined}
            aria-describedby={id}
            inputMode="numeric"
            className="w-24!"
            value={value.count}
            onChange={(e) => change({ ...value, count: e.target.value })}
          />
          <Select
            aria-label={t.unit}
            value={value.unit}
            onChange={(e) => change({ ...value, unit: e.target.value as Unit })}
          >
            {(Object.keys(t.units) as Unit[]).map((unit) => (
              <option key={unit} value={unit}>
                {t.units[unit]}
              </option>
            ))}
          </Select>
        </div>
      )}
      <p id={id} className={end === null ? "text-12 text-bad" : "text-12 text-ink-2"}>
        {words(end)}
      </p>
    </div>
  );
}
