import { clsx } from "clsx";
import { useId } from "react";

/** One choice out of a few, side by side. Arrow keys move between them, as with radio buttons. */
export function Choices<V extends string>({
  label,
  hideLabel,
  choices,
  value,
  onChange,
}: {
  label: string;
  hideLabel?: boolean;
  choices: Record<V, string>;
  value: V;
  onChange(value: V): void;
}) {
  const name = useId();
  return (
    <fieldset className="min-w-0 space-y-1.5">
      <legend className={hideLabel ? "sr-only" : "block text-13 font-medium text-ink"}>{label}</legend>
      <div className="flex flex-wrap gap-1 rounded-md bg-sunken p-1">
        {(Object.keys(choices) as V[]).map((key) => (
          <label
            key={key}
            className={clsx(
              "relative flex min-h-6 flex-1 cursor-pointer items-center justify-center rounded px-2 py-0.5 text-center text-13 whitespace-nowrap has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent max-md:min-h-8",
              key === value ? "bg-surface font-medium text-ink shadow-sm dark:bg-chip" : "text-ink-2 hover:text-ink",
            )}
          >
            <input
              type="radio"
              name={name}
              value={key}
              checked={key === value}
              onChange={() => onChange(key)}
              className="absolute inset-0 cursor-pointer opacity-0"
            />
            {choices[key]}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
