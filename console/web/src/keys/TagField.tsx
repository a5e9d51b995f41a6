import { clsx } from "clsx";
import { Plus, X } from "lucide-react";
import { type KeyboardEvent, useId, useRef, useState } from "react";
import { text } from "@/text";
import { announce, Field } from "@/ui";
import { chipsOf, completeTag, enteredTag, notATag, tagsToOffer, typedTags, withoutTag } from "./facts";
import { usePolicyTags } from "./policyTags";

const most = 12;

/**
 * A field for tags. Entered tags are chips; Enter, a space or a comma turns the typed word into one. Enter submits the
 * form only when nothing is typed. It completes tags with owners in the policy, and accepts others with a warning.
 */
export function TagField({
  value,
  onChange,
  error,
  autoFocus,
}: {
  /** The chips and the word being typed, separated by spaces. */
  value: string;
  onChange(typed: string): void;
  error?: string;
  autoFocus?: boolean;
}) {
  const t = text.keys.tags;
  const policy = usePolicyTags();
  const input = useRef<HTMLInputElement>(null);
  const listId = useId();
  const [active, setActive] = useState<string | null>(null);
  /** A word for which Enter was pressed, but which is not a tag. */
  const [refused, setRefused] = useState<string | null>(null);
  const known = policy?.known ?? [];
  const { chips, word } = chipsOf(value);
  const badChip = notATag(chips);
  const badWord = word !== "" && notATag([word]) ? word : undefined;
  const unknown = policy && !policy.anyTag ? [...chips, word].filter((tag) => tag && !known.includes(tag)) : [];
  const offered = tagsToOffer(value, known).slice(0, most);
  const chosen = offered.includes(active ?? "") ? active : null;
  // A tag that is still being typed does not count as wrong yet.
  const bad = badChip ?? (badWord && (offered.length === 0 || refused === word) ? badWord : undefined);
  const wrong = bad ? t.bad(bad) : error;

  const set = (next: string) => {
    setActive(null);
    onChange(next);
    const after = chipsOf(next).chips;
    const added = after.filter((tag) => !chips.includes(tag));
    const removed = chips.filter((tag) => !after.includes(tag));
    if (added.length + removed.length > 0) announce([...added.map(t.added), ...removed.map(t.removed)].join(", "));
  };
  const add = (tag: string) => set(completeTag(value, tag));
  const remove = (tag: string) => {
    set(withoutTag(value, tag));
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && (word !== "" || chosen !== null)) {
      event.preventDefault();
      const tag = chosen ?? enteredTag(word, known, chips);
      if (tag === undefined) setRefused(word);
      else add(tag);
    } else if (event.key === "Backspace" && word === "" && chips.length > 0) {
      event.preventDefault();
      set(withoutTag(value, chips.at(-1) ?? ""));
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (offered.length === 0) return;
      event.preventDefault();
      const at = chosen === null ? -1 : offered.indexOf(chosen);
      const next = event.key === "ArrowDown" ? at + 1 : at < 0 ? offered.length - 1 : at - 1;
      // Moving past either end selects no suggestion.
      setActive(offered[next] ?? null);
    }
  };
  const optionId = (tag: string) => `${listId}-${offered.indexOf(tag)}`;
  return (
    <Field
      label={t.label}
      error={wrong}
      hint={!wrong && !badWord && unknown.length > 0 && <span className="text-warn">{t.unknown(unknown)}</span>}
    >
      {(control) => (
        <>
          {/* biome-ignore lint/a11y/noStaticElementInteractions: a click beside the text goes to the text, as in any field */}
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: the input itself takes the keys */}
          <div
            onClick={(event) => event.target === event.currentTarget && input.current?.focus()}
            className={clsx(
              "flex min-h-8 w-full cursor-text flex-wrap items-center gap-1 rounded-md border bg-surface p-1 text-13 text-ink has-[input:focus]:outline-2 has-[input:focus]:outline-accent",
              wrong ? "border-bad" : "border-control",
            )}
          >
            {chips.length > 0 && (
              <ul aria-label={t.chosen} className="contents">
                {chips.map((tag) => (
                  <Chip key={tag} tag={tag} bad={notATag([tag]) !== undefined} onRemove={() => remove(tag)} />
                ))}
              </ul>
            )}
            <input
              {...control}
              ref={input}
              role="combobox"
              aria-expanded={offered.length > 0}
              aria-controls={offered.length > 0 ? listId : undefined}
              aria-autocomplete="list"
              aria-activedescendant={chosen === null ? undefined : optionId(chosen)}
              value={word}
              placeholder={chips.length === 0 ? "tag:web" : undefined}
              onChange={(event) => set(typedTags(chips, event.target.value, known))}
              onKeyDown={onKeyDown}
              // biome-ignore lint/a11y/noAutofocus: it is the first field of a dialog that somebody opened for it
              autoFocus={autoFocus}
              autoComplete="off"
              spellCheck={false}
              className="h-6 min-w-24 flex-1 bg-transparent px-1.5 font-mono outline-none placeholder:text-13 max-md:text-[16px]"
            />
          </div>
          {offered.length > 0 && (
            <div role="listbox" id={listId} aria-label={t.offered} className="flex flex-wrap gap-1">
              {offered.map((tag) => (
                // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which points to the active option
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys
                <div
                  key={tag}
                  role="option"
                  id={optionId(tag)}
                  aria-selected={tag === chosen}
                  onClick={() => {
                    add(tag);
                    input.current?.focus();
                  }}
                  className="inline-flex h-6 cursor-pointer items-center gap-1 rounded border border-line-strong px-1.5 font-mono text-11 text-ink-2 hover:bg-sunken hover:text-ink aria-selected:border-accent aria-selected:bg-accent-soft aria-selected:text-accent-ink max-md:h-8"
                >
                  <Plus className="size-3" aria-hidden />
                  {tag}
                </div>
              ))}
            </div>
          )}
        </>
      )}
    </Field>
  );
}

const Chip = ({ tag, bad, onRemove }: { tag: string; bad: boolean; onRemove(): void }) => (
  <li
    className={clsx(
      "inline-flex h-6 max-w-full items-center gap-0.5 rounded pl-1.5 font-mono text-12 max-md:h-8",
      bad ? "bg-bad-soft text-bad" : "bg-chip text-ink",
    )}
  >
    <span className="truncate">{tag}</span>
    <button
      type="button"
      aria-label={text.keys.tags.remove(tag)}
      onClick={onRemove}
      className="grid size-6 shrink-0 place-items-center rounded text-ink-2 hover:text-ink max-md:size-8"
    >
      <X className="size-3" aria-hidden />
    </button>
  </li>
);
