import { Link } from "@tanstack/react-router";
import { entry, printable } from "@/text";
import { userWords } from "@/text/users";
import type { Mention } from "./mentions";

const t = userWords.mentions;

/** Where the policy names a user, each with a link to its line. */
export function MentionList({ mentions, most = 6 }: { mentions: readonly Mention[]; most?: number }) {
  return (
    <ul className="mt-1 space-y-0.5">
      {mentions.slice(0, most).map((mention) => (
        <li key={`${mention.section} ${mention.line}`} className="flex items-baseline gap-2">
          <span className="min-w-0 truncate text-ink">{mentionWords(mention)}</span>
          <Link
            to="/policy"
            search={{ line: String(mention.line) } as never}
            className="inline-flex min-h-6 shrink-0 items-center text-12 text-accent-ink hover:underline"
          >
            {t.line(mention.line)}
          </Link>
        </li>
      ))}
      {mentions.length > most && <li>{t.more(mentions.length - most)}</li>}
    </ul>
  );
}

function mentionWords({ section, name }: Mention): string {
  const of = entry(t.sections, section) ?? t.other(section);
  return name ? printable(name) : of;
}
