import { useQuery } from "@tanstack/react-query";
import { preAuthKeysQuery } from "@/api";
import { KeyKind, keyName, useKeyActions } from "@/keys";
import { printable } from "@/text";
import { myWords } from "@/text/my";
import { Button, ErrorState, LoadingLines, Section, Time, useNow, useWrites } from "@/ui";
import { keysOf } from "./facts";

const t = myWords.keys;

/** The usable pre-auth keys of a person. */
export function Keys({ person }: { person: string }) {
  const { data, error, refetch } = useQuery(preAuthKeysQuery);
  const start = useKeyActions();
  const now = useNow();
  const { why } = useWrites("preauthkeys:read");
  const own = data && keysOf(data.items, person, now);
  return (
    <Section title={t.title} note={own?.length}>
      {own ? (
        own.length === 0 ? (
          <p className="px-4 py-4 text-ink-2">{t.none}</p>
        ) : (
          <ul aria-label={t.list}>
            {own.map((key) => (
              <li key={key.id} className="flex items-center gap-3 border-b border-hair px-4 py-2 last:border-b-0">
                <div className="min-w-0 flex-1">
                  <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
                    <span className="truncate font-mono text-12">{keyName(key)}</span>
                    <KeyKind of={key} now={now} />
                  </div>
                  <div className="text-12 text-ink-2">
                    {key.description && `${printable(key.description)} · `}
                    <Time at={key.expiration} format={t.ends} />
                    {key.uses > 0 && ` · ${t.uses(key.uses)}`}
                  </div>
                </div>
                <Button
                  why={why}
                  aria-label={t.expireOf(keyName(key))}
                  onClick={() => start({ name: "expire", keys: [key] })}
                >
                  {t.expire}
                </Button>
              </li>
            ))}
          </ul>
        )
      ) : error ? (
        <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />
      ) : (
        <LoadingLines widths={["w-48", "w-32"]} className="space-y-4 p-4" />
      )}
    </Section>
  );
}
