import { CopyButton } from "./copy";

/** A command to copy. Long ones break between words where possible; the copied text has no line breaks. */
export function Command({
  value,
  what,
  incomplete,
  onCopied,
}: {
  value: string;
  what: string;
  /** Whether there is nothing to copy yet. */
  incomplete?: boolean;
  onCopied?(): void;
}) {
  return (
    <div className="flex items-start gap-2 rounded-md bg-chip py-1.5 pr-1.5 pl-3 text-left">
      <code className="min-w-0 flex-1 py-1 font-mono text-12 leading-4 whitespace-pre-wrap text-ink">
        {value.split(/(\s+)/).map((part, index) =>
          index % 2 === 1 ? (
            part
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: the parts have no other key
            <span key={index} className="inline-block max-w-full align-top break-all">
              {part}
            </span>
          ),
        )}
      </code>
      {!incomplete && <CopyButton value={value} what={what} onCopied={onCopied} />}
    </div>
  );
}
