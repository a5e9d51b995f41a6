/** A dialog with policies to start from. */
import { useId, useMemo, useState } from "react";
import { printable, text } from "@/text";
import { policyForms } from "@/text/en/policyForms";
import { Button, Dialog } from "@/ui";
import { personOf } from "./names";
import { type TemplateName, templateNames, templateText } from "./templates";

const t = policyForms.templates;

export default function Templates({
  users,
  viewer,
  onUse,
  onClose,
}: {
  users: readonly { name: string }[];
  /** The current user in the syntax of a policy, or empty. */
  viewer: string;
  onUse(policy: string, name: string): void;
  onClose(): void;
}) {
  const [chosen, setChosen] = useState<TemplateName>("home");
  const policy = useMemo(() => {
    const all = users.map((user) => personOf(user.name));
    const admin = all.includes(viewer) ? viewer : all[0];
    return templateText(chosen, {
      admins: admin === undefined ? [] : [admin],
      others: all.filter((name) => name !== admin),
    });
  }, [chosen, users, viewer]);
  const name = useId();
  return (
    <Dialog
      title={t.title}
      wide
      onClose={onClose}
      onSubmit={() => {
        onUse(policy, t.names[chosen]);
        onClose();
      }}
      footer={
        <>
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary">
            {t.submit}
          </Button>
        </>
      }
    >
      <p>{t.about}</p>
      <fieldset className="grid grid-cols-2 gap-2 max-md:grid-cols-1">
        <legend className="sr-only">{t.choose}</legend>
        {templateNames.map((one) => (
          <label
            key={one}
            className="flex cursor-pointer items-start gap-2.5 rounded-lg border border-line px-3 py-2.5 has-checked:border-accent has-checked:bg-picked"
          >
            <input
              type="radio"
              name={name}
              className="mt-0.5 size-4 shrink-0 accent-accent"
              checked={chosen === one}
              onChange={() => setChosen(one)}
              aria-labelledby={`${name}-${one}`}
              aria-describedby={`${name}-${one}-about`}
            />
            <span className="min-w-0">
              <span id={`${name}-${one}`} className="block text-13 font-medium text-ink">
                {t.names[one]}
              </span>
              <span id={`${name}-${one}-about`} className="block text-12 text-ink-2">
                {t.summaries[one]}
              </span>
            </span>
          </label>
        ))}
      </fieldset>
      <section
        aria-label={t.preview}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        tabIndex={0}
        className="max-h-[38vh] overflow-auto rounded-lg border border-line bg-canvas"
      >
        <pre className="p-3 font-mono text-12 break-words whitespace-pre-wrap text-ink">
          {policy.split("\n").map((line) => `${printable(line, 2000)}\n`)}
        </pre>
      </section>
    </Dialog>
  );
}
