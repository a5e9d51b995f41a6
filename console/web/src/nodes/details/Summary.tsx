import { Link } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";
import type { Node } from "@/api";
import { keyName } from "@/keys/facts";
import { printable, text } from "@/text";
import { Avatar, Button, Chips, Time, useWrites } from "@/ui";
import { useNodeActions } from "../actions";
import { shortVersion, systemName } from "../facts";
import { Network } from "./Network";
import { Fact, Facts, Section } from "./parts";

const t = text.node;

/** Who a node is, what it runs on, and what it says of its network. */
export function Summary({ node, deleted }: { node: Node; deleted: boolean }) {
  return (
    <div className="@container">
      <Warnings node={node} />
      <div className="grid grid-cols-1 items-start gap-4 @min-[760px]:grid-cols-2">
        <div className="space-y-4">
          <Identity node={node} deleted={deleted} />
          <Device node={node} />
        </div>
        <Network node={node} />
      </div>
    </div>
  );
}

function Warnings({ node }: { node: Node }) {
  const messages = node.host?.health ?? [];
  if (messages.length === 0) return null;
  return (
    <section aria-label={t.health} className="mb-4 rounded-lg bg-warn-soft p-4 text-warn">
      <h2 className="flex items-center gap-2 font-semibold">
        <TriangleAlert className="size-4" aria-hidden /> {t.health}
      </h2>
      <ul className="mt-2 space-y-1">
        {messages.map(({ source, message, since }) => (
          <li key={source + message} className="break-words">
            {printable(message, 600)} <Time at={since} format={t.since} className="text-12" />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Identity({ node, deleted }: { node: Node; deleted: boolean }) {
  const start = useNodeActions();
  const { offered, why } = useWrites("nodes:write");
  const tagged = node.tags.length > 0;
  return (
    <Section title={t.identity}>
      <Facts>
        <Fact label={tagged ? t.tags : t.owner}>
          <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
            {tagged ? (
              <Chips tags={node.tags} most={20} />
            ) : node.user ? (
              <Link
                to="/users/$id"
                params={{ id: node.user.id }}
                className="flex min-w-0 items-center gap-2 hover:underline"
              >
                <Avatar name={node.user.name} />
                <span className="truncate">{printable(node.user.name)}</span>
              </Link>
            ) : (
              text.common.none
            )}
            {offered && !deleted && (
              <SmallButton why={why} onClick={() => start({ name: "tags", node })}>
                {tagged ? t.editTags : t.addTags}
              </SmallButton>
            )}
          </span>
        </Fact>
        {tagged && node.createdBy && <Fact label={t.createdBy}>{printable(node.createdBy.name)}</Fact>}
        <Fact label={t.joined}>
          <Joined node={node} />
        </Fact>
        <Fact label={t.lastSeen}>{node.online ? t.connected : <Time at={node.lastSeen} />}</Fact>
        <Fact label={t.expiry}>
          <Expiry node={node} deleted={deleted} />
        </Fact>
        {node.ephemeral && <Fact label={t.kind}>{t.ephemeral}</Fact>}
      </Facts>
    </Section>
  );
}

function Joined({ node }: { node: Node }) {
  const key = node.preAuthKey;
  return (
    <>
      <Time at={node.createdAt} />
      <span className="block text-12 text-ink-2">
        {t.joinedBy[node.registerMethod]}
        {key && (
          <>
            {" "}
            <Link
              to="/nodes"
              search={{ q: `key:${keyName(key)}` } as never}
              className="font-mono text-accent-ink underline-offset-2 hover:underline"
            >
              {printable(key.key.replace(/_?\*+$/, ""))}
            </Link>
          </>
        )}
      </span>
    </>
  );
}

function Expiry({ node, deleted }: { node: Node; deleted: boolean }) {
  const start = useNodeActions();
  const { offered, why } = useWrites("nodes:write");
  return (
    <>
      {node.expiry ? (
        <Time
          at={node.expiry}
          format={node.expired ? text.nodes.expired : undefined}
          className={node.expired ? "text-bad" : undefined}
        />
      ) : (
        t.expiresNever
      )}
      {offered && !deleted && (
        <span className="mt-1 flex flex-wrap gap-2">
          {!node.expired && (
            <SmallButton why={why} onClick={() => start({ name: "expire", nodes: [node] })}>
              {t.expireNow}
            </SmallButton>
          )}
          <SmallButton why={why} onClick={() => start({ name: "setExpiry", node })}>
            {node.expiry ? t.changeExpiry : t.setExpiry}
          </SmallButton>
          {node.expiry && (
            <SmallButton why={why} onClick={() => start({ name: "neverExpire", node })}>
              {t.disableExpiry}
            </SmallButton>
          )}
        </span>
      )}
    </>
  );
}

function Device({ node }: { node: Node }) {
  const host = node.host;
  const distro = [host?.distro, host?.distroVersion].filter(Boolean).join(" ");
  const system = [systemName(node.os), host?.osVersion].filter(Boolean).join(" ");
  return (
    <Section title={t.device}>
      <Facts>
        <Fact label={t.hostname}>{printable(node.hostname)}</Fact>
        <Fact label={t.system}>
          {printable(distro || system || t.unknown)}
          <span className="block text-12 text-ink-2">
            {printable([distro && system, node.arch].filter(Boolean).join(" · "))}
          </span>
        </Fact>
        {host?.deviceModel && <Fact label={t.model}>{printable(host.deviceModel)}</Fact>}
        <Fact label={t.client}>
          <span className="font-mono text-12">{printable(shortVersion(node.clientVersion)) || t.unknown}</span>
        </Fact>
      </Facts>
    </Section>
  );
}

const SmallButton = ({ className, ...rest }: Parameters<typeof Button>[0]) => (
  <Button className="h-6! px-2! text-12!" {...rest} />
);
