/** The sections of a user's summary. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Node, preAuthKeysQuery, type User } from "@/api";
import { keyName, keyState } from "@/keys";
import { ipv4Of, NodeMark, OsIcon } from "@/nodes";
import { printable, text } from "@/text";
import { userWords } from "@/text/users";
import { Badge, Button, Chips, Section, Time, useNow } from "@/ui";
import { MentionList, useAccessWrites, usePasskeys, usePolicyMentions, useUserActions } from "@/users";

const t = userWords.page;

const mostNodes = 10;

export function Nodes({ user, nodes }: { user: User; nodes: readonly Node[] | undefined }) {
  const [all, setAll] = useState(false);
  const shown = all ? nodes : nodes?.slice(0, mostNodes);
  return (
    <Section
      title={t.nodes}
      note={nodes?.length}
      action={
        nodes &&
        nodes.length > 0 && (
          <Link
            to="/nodes"
            search={{ q: `user:${user.name.toLowerCase()}` } as never}
            className="-mr-2 inline-flex h-8 items-center rounded-md px-2 font-medium text-accent-ink hover:bg-accent-soft"
          >
            {t.allNodes}
          </Link>
        )
      }
    >
      {shown && shown.length === 0 && (
        <p className="px-4 py-4 text-ink-2">
          <span className="text-ink">{t.noNodes}</span> {t.noNodesHint}
        </p>
      )}
      <ul>
        {shown?.map((node) => (
          <li key={node.id} className="flex h-10 items-center gap-2.5 border-b border-hair px-4 last:border-b-0">
            <NodeMark node={node} />
            <OsIcon os={node.os} />
            <Link
              to="/nodes/$id"
              params={{ id: node.id }}
              className="min-w-0 flex-1 truncate font-medium hover:underline"
            >
              {printable(node.givenName)}
            </Link>
            <span className="font-mono text-12 text-ink-2 max-sm:hidden">{ipv4Of(node)}</span>
            <span className="w-24 text-right text-12 text-ink-3">
              {node.expired ? (
                <span className="text-bad">{text.nodes.state.expired}</span>
              ) : node.online ? (
                text.common.now
              ) : (
                <Time at={node.lastSeen} focusable={false} />
              )}
            </span>
          </li>
        ))}
      </ul>
      {nodes && shown && nodes.length > shown.length && (
        <div className="border-t border-hair px-2 py-1">
          <Button look="ghost" onClick={() => setAll(true)}>
            {t.more(nodes.length)}
          </Button>
        </div>
      )}
    </Section>
  );
}

export function Groups({ user }: { user: User }) {
  const mentions = usePolicyMentions();
  const groups = mentions?.groups(user);
  const others = mentions?.all(user).filter((mention) => mention.section !== "groups") ?? [];
  return (
    <Section title={t.groups} note={groups?.length}>
      <div className="space-y-3 px-4 py-3">
        {groups &&
          (groups.length > 0 ? (
            <MentionList mentions={groups} most={20} />
          ) : (
            <p className="text-ink-2">{t.noGroups}</p>
          ))}
        {(user.groups ?? []).length > 0 && (
          <div>
            <h3 className="mb-1 text-12 text-ink-3">{t.providerGroups}</h3>
            <div className="flex flex-wrap gap-1">
              {user.groups?.map((group) => (
                <Chips key={group} tags={[group]} />
              ))}
            </div>
          </div>
        )}
        {others.length > 0 && (
          <div>
            <h3 className="text-12 text-ink-3">{t.named}</h3>
            <MentionList mentions={others} most={12} />
          </div>
        )}
      </div>
    </Section>
  );
}

/** The passkeys of a user whom an administrator created. */
export function Passkeys({ user }: { user: User }) {
  const words = userWords.passkeys;
  const start = useUserActions();
  const passkeys = usePasskeys(user);
  const { offered, why } = useAccessWrites();
  return (
    <Section
      title={words.section}
      note={passkeys?.length}
      action={
        offered && (
          <Button why={why} onClick={() => start({ name: "invite", user })}>
            {t.invite}
          </Button>
        )
      }
    >
      {passkeys?.length === 0 && <p className="px-4 py-4 text-ink-2">{words.none}</p>}
      <ul aria-label={words.list}>
        {passkeys?.map((passkey, i) => (
          <li key={passkey.id} className="flex items-center gap-3 border-b border-hair px-4 py-2 last:border-b-0">
            <div className="min-w-0 flex-1">
              <div className="flex items-center gap-2">
                <span>{words.number(i + 1)}</span>
                <Badge>{passkey.syncable ? words.synced : words.bound}</Badge>
              </div>
              <div className="text-12 text-ink-3">
                <Time at={passkey.createdAt} format={words.created} />
                {" · "}
                {passkey.lastUsed ? <Time at={passkey.lastUsed} format={words.used} /> : words.unused}
              </div>
            </div>
            {offered && (
              <Button
                look="ghost-danger"
                why={why}
                aria-label={words.deleteName(i + 1)}
                onClick={() => start({ name: "deletePasskey", passkey, last: passkeys.length === 1 })}
              >
                {userWords.actions.delete}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function Keys({ user }: { user: User }) {
  const { data } = useQuery(preAuthKeysQuery);
  const now = useNow();
  const keys = data?.items.filter((key) => key.user?.id === user.id && keyState(key, now) === "usable");
  return (
    <Section title={t.keys} note={keys?.length}>
      {keys?.length === 0 && <p className="px-4 py-4 text-ink-2">{t.noKeys}</p>}
      <ul>
        {keys?.map((key) => (
          <li key={key.id} className="border-b border-hair px-4 py-2 last:border-b-0">
            <div className="flex items-center gap-2">
              <Link
                to="/keys"
                search={{ q: keyName(key) } as never}
                className="min-w-0 flex-1 truncate font-mono text-12 hover:underline"
              >
                {keyName(key)}
              </Link>
              <Badge>{key.reusable ? t.keyReusable : t.keyOnce}</Badge>
              {key.ephemeral && <Badge>{t.keyEphemeral}</Badge>}
            </div>
            <div className="text-12 text-ink-3">
              <Time at={key.expiration} format={t.ends} />
              {key.uses > 0 && ` · ${t.uses(key.uses)}`}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
