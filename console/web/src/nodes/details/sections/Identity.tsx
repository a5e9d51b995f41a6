import { Link } from "@tanstack/react-router";
import type { Node } from "@/api";
import { keyName } from "@/keys/facts";
import { printable, text } from "@/text";
import { owner } from "@/text/ownership";
import { Avatar, Chips, Time, useWrites } from "@/ui";
import { useNodeActions } from "../../actions";
import { Fact, Facts, Section, SmallButton, type SummarySection } from "../parts";

const t = text.node;

/** The identity of a node, and when it was created and expires. */
export default { column: "left", order: 1, Show: Identity } satisfies SummarySection;

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
              <>
                {!tagged && (
                  <SmallButton why={why} onClick={() => start({ name: "owner", node })}>
                    {owner.change}
                  </SmallButton>
                )}
                <SmallButton why={why} onClick={() => start({ name: "tags", node })}>
                  {tagged ? t.editTags : t.addTags}
                </SmallButton>
              </>
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
