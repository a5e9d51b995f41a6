import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { type PreAuthKey, useNodes } from "@/api";
import { KeyKind, KeyOwner, KeyStateMark, keyName, usePolicyTags } from "@/keys";
import { byName, NodeMark } from "@/nodes";
import { printable, text } from "@/text";
import { CopyButton, Time, useNow } from "@/ui";

const t = text.keys;
const most = 12;

/** The details of a key, next to the list. */
export function KeySummary({ of: key, creator }: { of: PreAuthKey; creator: string | undefined }) {
  const now = useNow();
  const policy = usePolicyTags();
  const { data } = useNodes();
  const joined = useMemo(
    () => data?.items.filter((node) => node.preAuthKey?.id === key.id).sort(byName),
    [data, key.id],
  );
  return (
    <>
      <dl className="grid grid-cols-[120px_minmax(0,1fr)] items-center gap-y-2.5 text-13">
        <Fact label={t.columns.state}>
          <KeyStateMark of={key} now={now} />
        </Fact>
        <Fact label={t.columns.key}>
          <span className="flex items-center gap-1 font-mono text-12">
            {keyName(key)} <CopyButton value={keyName(key)} what={keyName(key)} />
          </span>
        </Fact>
        {key.description && (
          <Fact label={t.columns.description}>
            <span className="break-words">{printable(key.description)}</span>
          </Fact>
        )}
        <Fact label={t.columns.owner}>
          <KeyOwner of={key} />
        </Fact>
        <Fact label={t.columns.kind}>
          <KeyKind of={key} powerful={policy?.powerful} now={now} />
        </Fact>
        <Fact label={t.columns.uses}>{text.common.count(key.uses)}</Fact>
        <Fact label={t.panel.lastUsed}>
          {key.lastUsed ? (
            <Time
              at={key.lastUsed}
              format={(when) => (key.lastUsedFrom ? t.panel.lastUsedFrom(when, key.lastUsedFrom) : when)}
            />
          ) : (
            text.common.never
          )}
        </Fact>
        {creator && <Fact label={t.columns.by}>{printable(creator)}</Fact>}
        <Fact label={t.columns.created}>
          <Time at={key.createdAt} />
        </Fact>
        <Fact label={t.columns.expires}>
          <Time at={key.expiration} />
        </Fact>
      </dl>
      {joined && (
        <section className="mt-6">
          <h3 className="mb-2 font-semibold">{t.panel.nodes}</h3>
          {joined.length === 0 && <p className="text-ink-2">{t.panel.noNodes}</p>}
          <ul className="-mx-2">
            {joined.slice(0, most).map((node) => (
              <li key={node.id}>
                <Link
                  to="/nodes/$id"
                  params={{ id: node.id }}
                  className="flex h-8 items-center gap-2.5 rounded-md px-2 hover:bg-sunken"
                >
                  <NodeMark node={node} />
                  <span className="truncate">{printable(node.givenName)}</span>
                </Link>
              </li>
            ))}
          </ul>
          {joined.length > most && (
            <Link
              to="/nodes"
              search={{ q: `key:${keyName(key)}` }}
              className="text-accent-ink underline-offset-2 hover:underline"
            >
              {t.panel.more(joined.length)}
            </Link>
          )}
        </section>
      )}
    </>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="self-start pt-0.5 text-ink-2">{label}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}
