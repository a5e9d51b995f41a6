import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Copy, Hourglass, Server, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { api, keys, newRequestName, type PreAuthKey, useCan, useNodes } from "@/api";
import { text } from "@/text";
import { ApiCall, Confirm, copyAloud, MenuItem, MenuLine, RowMenu, useNow, useStatus, useWrites } from "@/ui";
import { actionsOf } from "@/ui/actions";
import { CreateKeyDialog } from "./CreateKeyDialog";
import { keyName, keyState, nodesByKey } from "./facts";

const t = text.keys;

export type KeyAction = { name: "create" } | { name: "expire" | "delete"; keys: readonly PreAuthKey[] };

const actions = actionsOf<KeyAction>(({ action, onClose }) =>
  action.name === "create" ? (
    <CreateKeyDialog onClose={onClose} />
  ) : (
    <Ask name={action.name} chosen={action.keys} onClose={onClose} />
  ),
);
/** `const start = useKeyActions(); start({ name: "create" })` */
export const useKeyActions = actions.useStart;
/** Provides the dialogs for pre-auth keys to the page inside. */
export const KeyActionsProvider = actions.Provider;

/** The actions on one key. */
export function KeyMenu({ of: key }: { of: PreAuthKey }) {
  const start = useKeyActions();
  const navigate = useNavigate();
  const { offered, why } = useWrites("preauthkeys:write");
  const now = useNow();
  const name = keyName(key);
  return (
    <RowMenu name={name}>
      <MenuItem icon={Copy} onSelect={() => void copyAloud(name)}>
        {t.actions.copy}
      </MenuItem>
      <MenuItem icon={Server} onSelect={() => void navigate({ to: "/nodes", search: { q: `key:${name}` } })}>
        {t.actions.nodes}
      </MenuItem>
      {offered && (
        <>
          <MenuLine />
          {keyState(key, now) === "usable" && (
            <MenuItem icon={Hourglass} why={why} onSelect={() => start({ name: "expire", keys: [key] })}>
              {t.actions.expire}
            </MenuItem>
          )}
          <MenuItem
            icon={Trash2}
            danger
            keyHint="Del"
            why={why}
            onSelect={() => start({ name: "delete", keys: [key] })}
          >
            {t.actions.delete}
          </MenuItem>
        </>
      )}
    </RowMenu>
  );
}

/** Applies the action to all keys, and reports which ones failed and why, with an option to retry these. */
function useKeyBulk(action: "expire" | "delete", onClose: () => void) {
  const status = useStatus();
  const [busy, setBusy] = useState(false);
  const client = useQueryClient();
  const follows = useCan()("history:read");
  const words = action === "expire" ? t.expire : t.remove;
  const start = async (chosen: readonly PreAuthKey[]) => {
    setBusy(true);
    try {
      const failed: { key: PreAuthKey; why: string }[] = [];
      for (let from = 0; from < chosen.length; from += 1000) {
        const part = chosen.slice(from, from + 1000);
        const { data } = await api.call("post", "/api/v1/preauthkey/bulk", {
          body: { ids: part.map((key) => key.id), action },
          once: newRequestName(),
        });
        data.results.forEach((result, i) => {
          const key = part[i];
          if (!result.ok && key) failed.push({ key, why: result.error?.message ?? "" });
        });
      }
      if (failed.length === 0) status.done(words.done(chosen.length));
      else
        status.failed(
          t.partly(chosen.length - failed.length, failed.length),
          failed
            .slice(0, 3)
            .map(({ key, why }) => `${keyName(key)}: ${why}`)
            .join(" · "),
          { label: t.retry(failed.length), run: () => void start(failed.map(({ key }) => key)) },
        );
    } catch (error) {
      status.failed(words.failed, error);
    }
    // Without the stream, nothing else would report the change.
    if (!follows) void client.invalidateQueries({ queryKey: keys.preAuthKeys });
    setBusy(false);
    onClose();
  };
  return { busy, start };
}

function Ask({ name, chosen, onClose }: { name: "expire" | "delete"; chosen: readonly PreAuthKey[]; onClose(): void }) {
  const { busy, start } = useKeyBulk(name, onClose);
  const { data: nodes } = useNodes();
  const words = name === "expire" ? t.expire : t.remove;
  const only = chosen.length === 1 ? chosen[0] : undefined;
  const joined = useMemo(() => {
    const count = nodesByKey(nodes?.items ?? []);
    return chosen.reduce((sum, key) => sum + (count.get(key.id) ?? 0), 0);
  }, [nodes, chosen]);
  return (
    <Confirm
      title={only ? words.title(keyName(only)) : words.titleMany(chosen.length)}
      submit={only ? words.submit : words.submitMany(chosen.length)}
      word={chosen.length >= 5 ? String(chosen.length) : undefined}
      busy={busy}
      call={
        <ApiCall
          method="post"
          path="/api/v1/preauthkey/bulk"
          body={{ ids: chosen.map((key) => key.id), action: name }}
        />
      }
      onClose={onClose}
      onSubmit={() => void start(chosen)}
    >
      <p>
        {only ? words.body : words.bodyMany} {joined > 0 ? t.stay(joined) : only && nodes ? t.noneJoined : ""}
      </p>
      {!only && (
        <ul className="max-h-40 overflow-y-auto rounded-md bg-chip px-3 py-2 font-mono text-12 text-ink">
          {chosen.map((key) => (
            <li key={key.id}>{keyName(key)}</li>
          ))}
        </ul>
      )}
    </Confirm>
  );
}
