import { Pencil } from "lucide-react";
import { useId, useRef, useState } from "react";
import { type Node, useDNS } from "@/api";
import { printable, text } from "@/text";
import { Button, CopyButton, IconButton, Input, Time, useShortcuts, useWrites } from "@/ui";
import { fullName, stateOf } from "../facts";
import { NodeMark } from "../marks";
import { useRename } from "../rename";

const t = text.node;

/** The name of a node, which can be edited in place. */
export function NodeName({ node, deleted }: { node: Node; deleted: boolean }) {
  const [renaming, setRenaming] = useState(false);
  const { offered, now, why } = useWrites("nodes:write");
  const button = useRef<HTMLButtonElement>(null);
  const may = offered && now && !deleted;
  useShortcuts(
    may
      ? [{ keys: "e", label: text.nodes.actions.rename, group: text.shell.groups.page, run: () => setRenaming(true) }]
      : [],
  );
  const close = () => {
    setRenaming(false);
    requestAnimationFrame(() => button.current?.focus());
  };
  if (renaming) return <RenameInPlace node={node} onClose={close} />;
  return (
    <span className="flex min-w-0 items-center gap-1">
      <span className="min-w-0 truncate">{printable(node.givenName)}</span>
      {offered && !deleted && (
        <IconButton ref={button} label={t.rename} icon={Pencil} why={why} onClick={() => setRenaming(true)} />
      )}
    </span>
  );
}

function RenameInPlace({ node, onClose }: { node: Node; onClose(): void }) {
  const { typed, setTyped, problem, hint, submit, conflict } = useRename(node, onClose);
  const id = useId();
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onClose();
      }}
      className="space-y-1.5 text-13 font-normal tracking-normal"
    >
      <span className="flex flex-wrap items-center gap-2">
        <Input
          aria-label={text.nodes.rename.label}
          aria-describedby={id}
          aria-invalid={problem ? true : undefined}
          mono
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onFocus={(event) => event.target.select()}
          autoFocus
          className="w-64! max-w-full"
        />
        <Button type="submit" look="primary" disabled={Boolean(problem)}>
          {t.rename}
        </Button>
        <Button look="ghost" onClick={onClose}>
          {text.common.cancel}
        </Button>
      </span>
      <span id={id} className={problem ? "block text-12 text-bad" : "block text-12 text-ink-2"} aria-live="polite">
        {problem ?? hint}
      </span>
      {conflict}
    </form>
  );
}

/** The state of a node and the names and addresses at which it is reached. */
export function NodeNames({ node }: { node: Node }) {
  const { data: dns } = useDNS();
  const name = fullName(node.givenName, dns?.data);
  const state = stateOf(node);
  const names = name === node.givenName ? node.ipAddresses : [...node.ipAddresses, name];
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-13">
      <span className="flex items-center gap-2">
        <NodeMark node={node} />
        {text.nodes.state[state]}
        {state === "offline" && <Time at={node.lastSeen} className="text-ink-2" />}
      </span>
      {names.map((each) => (
        <span key={each} className="flex min-w-0 items-center gap-0.5 font-mono text-12 text-ink-2">
          <span className="truncate">{printable(each)}</span>
          <CopyButton value={each} what={printable(each)} />
        </span>
      ))}
    </div>
  );
}
