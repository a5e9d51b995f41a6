import { CopyButton } from "./copy";

/** A command to copy. Long ones break; what is copied does not. */
export function Command({ value, what, onCopied }: { value: string; what: string; onCopied?(): void }) {
  return (
    <div className="flex items-start gap-2 rounded-md bg-chip py-1.5 pr-1.5 pl-3">
      <code className="min-w-0 flex-1 py-1 font-mono text-12 leading-4 break-all whitespace-pre-wrap text-ink">
        {value}
      </code>
      <CopyButton value={value} what={what} onCopied={onCopied} />
    </div>
  );
}
