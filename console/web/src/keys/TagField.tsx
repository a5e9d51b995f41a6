import { Plus } from "lucide-react";
import { useRef } from "react";
import { text } from "@/text";
import { Field, Input } from "@/ui";
import { completeTag, notATag, tagsOf, tagsToOffer } from "./facts";
import { usePolicyTags } from "./policyTags";

const most = 12;

/** A field for tags that completes tags with owners in the policy. Other tags are accepted with a warning. */
export function TagField({
  value,
  onChange,
  error,
  autoFocus,
}: {
  value: string;
  onChange(typed: string): void;
  error?: string;
  autoFocus?: boolean;
}) {
  const t = text.keys.tags;
  const policy = usePolicyTags();
  const input = useRef<HTMLInputElement>(null);
  const tags = tagsOf(value);
  const bad = notATag(tags);
  const unknown = policy && !policy.anyTag ? tags.filter((tag) => !policy.known.includes(tag)) : [];
  const offered = tagsToOffer(value, policy?.known ?? []).slice(0, most);
  // A tag that is still being typed does not count as unknown yet.
  const wrong = bad && (/[\s,]$/.test(value) || offered.length === 0) ? t.bad(bad) : error;
  return (
    <Field
      label={t.label}
      error={wrong}
      hint={!wrong && !bad && unknown.length > 0 && <span className="text-warn">{t.unknown(unknown)}</span>}
    >
      {(control) => (
        <>
          <Input
            {...control}
            ref={input}
            mono
            value={value}
            placeholder="tag:web"
            onChange={(e) => onChange(e.target.value)}
            autoFocus={autoFocus}
          />
          {offered.length > 0 && (
            // biome-ignore lint/a11y/useSemanticElements: a fieldset would name a form, this names a row of buttons
            <div role="group" aria-label={t.offered} className="flex flex-wrap gap-1">
              {offered.map((tag) => (
                <button
                  key={tag}
                  type="button"
                  onClick={() => {
                    onChange(completeTag(value, tag));
                    input.current?.focus();
                  }}
                  className="inline-flex h-6 items-center gap-1 rounded border border-line-strong px-1.5 font-mono text-11 text-ink-2 hover:bg-sunken hover:text-ink max-md:h-8"
                >
                  <Plus className="size-3" aria-hidden />
                  {tag}
                </button>
              ))}
            </div>
          )}
        </>
      )}
    </Field>
  );
}
