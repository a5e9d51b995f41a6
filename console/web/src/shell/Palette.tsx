import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { KeyRound, Plus, ScrollText, Search, Server, Tag, User as UserIcon, Zap } from "lucide-react";
import { Dialog } from "radix-ui";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { apiKeysQuery, preAuthKeysQuery, useCan, useNodes, usePolicy, useUsers } from "@/api";
import { useNodeActions } from "@/nodes";
import { printable, text } from "@/text";
import { Kbd, useWrites } from "@/ui";
import { returnFocus } from "@/ui/focus";
import { releaseKeys } from "@/ui/heldKeys";
import { keyName } from "@/ui/shortcuts";
import { type Action, useAllActions } from "./actions";
import { type Entry, found } from "./entries";
import { shown } from "./KeyHelp";
import { accessPages, mainPages } from "./pages";
import { rulesOf } from "./rules";
import { nodeWork } from "./work";

const place = "fairlead.recent";

/**
 * The command palette: goes to any node, user, tag, rule, key or page and runs any action. Recently used entries first.
 */
export default function Palette({ onClose }: { onClose(): void }) {
  const [typed, setTyped] = useState("");
  const query = useDeferredValue(typed.trim().toLowerCase());
  const entries = useEntries();
  const [recent] = useState(recall);
  const work = useNodeWork(query);
  const groups = useMemo((): [string, Entry[]][] => {
    const all = found(entries, query, recent, text.shell.paletteGroups.recent);
    return work.length > 0 ? [...all, [text.shell.paletteGroups.work, work]] : all;
  }, [entries, query, recent, work]);
  const first = groups[0] ? markOf(groups[0][0], groups[0][1][0]) : "";
  const [chosen, setChosen] = useState(first);
  // biome-ignore lint/correctness/useExhaustiveDependencies: typing selects the first entry again
  useEffect(() => setChosen(first), [first, query]);
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-50 bg-black/40 dark:bg-black/60" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          onKeyDown={(event) => {
            if (keyName(event) !== "Mod+K") return;
            event.preventDefault();
            onClose();
          }}
          className="layer-in fixed inset-x-4 top-[10vh] z-50 mx-auto max-w-[560px] overflow-hidden rounded-lg border border-line-strong bg-raised shadow-bar outline-none"
        >
          <Dialog.Title className="sr-only">{text.shell.paletteTitle}</Dialog.Title>
          <Command label={text.shell.paletteTitle} shouldFilter={false} loop value={chosen} onValueChange={setChosen}>
            <div className="flex h-12 items-center gap-2.5 border-b border-line px-4">
              <Search className="size-4 shrink-0 text-ink-3" aria-hidden />
              <Command.Input
                value={typed}
                onValueChange={setTyped}
                onFocus={() => {
                  const early = releaseKeys();
                  if (early) setTyped((now) => now + early);
                }}
                placeholder={text.shell.palette}
                className="h-full min-w-0 flex-1 bg-transparent text-14 outline-none max-md:text-[16px]"
              />
              <span className="max-md:hidden">
                <Kbd>Esc</Kbd>
              </span>
            </div>
            <Command.List className="max-h-[60vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-3 py-8 text-center text-ink-2">{text.shell.paletteEmpty}</Command.Empty>
              {groups.map(([group, list]) => (
                <Command.Group
                  key={group}
                  heading={group}
                  className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-11 [&_[cmdk-group-heading]]:font-semibold [&_[cmdk-group-heading]]:text-ink-3"
                >
                  {list.map((entry) => (
                    <Command.Item
                      key={entry.id}
                      value={markOf(group, entry)}
                      onSelect={() => {
                        if (!entry.passing) remember(entry.id);
                        onClose();
                        entry.run();
                      }}
                      className="flex h-9 items-center gap-2.5 rounded-md px-2.5 aria-selected:bg-accent-soft aria-selected:text-accent-ink"
                    >
                      <entry.icon className="size-4 shrink-0 text-ink-3" aria-hidden />
                      <span className="truncate">{entry.title}</span>
                      {entry.note && (
                        <span className="ml-auto truncate font-mono text-12 text-ink-3">{entry.note}</span>
                      )}
                      {entry.keys && (
                        <span className="ml-auto flex gap-1 max-md:hidden" aria-hidden>
                          {shown(entry.keys).map((key) => (
                            <Kbd key={key}>{key}</Kbd>
                          ))}
                        </span>
                      )}
                    </Command.Item>
                  ))}
                </Command.Group>
              ))}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** A unique ID: the entry's own is not enough, because an entry may be in two groups. */
const markOf = (group: string, entry: Entry | undefined) => `${group} ${entry?.id ?? ""}`.toLowerCase();

function useEntries(): Entry[] {
  const navigate = useNavigate();
  const can = useCan();
  const here = useAllActions();
  const creates = useCreates();
  const { data: nodes } = useNodes();
  const { data: users } = useUsers();
  const keysAndRules = useKeysAndRules();
  return useMemo(() => {
    const groups = text.shell.paletteGroups;
    // An action that the page offers itself replaces the general one; actions offered everywhere come last.
    const more = creates.filter((each) => !here.some((action) => action.id === each.id));
    const actions = [...here.filter((a) => !a.rank), ...more, ...here.filter((a) => a.rank)];
    const tags = [...new Set(nodes?.items.flatMap((node) => node.tags))].sort();
    return [
      ...actions.map(
        (a): Entry => ({
          id: a.id,
          title: a.title,
          words: a.words?.join(" ") ?? "",
          icon: a.icon ?? Zap,
          keys: a.keys,
          group: groups.actions,
          run: a.run,
        }),
      ),
      ...[...mainPages, ...accessPages]
        .filter((page) => !page.right || can(page.right))
        .map(
          (page): Entry => ({
            id: page.to,
            title: page.title,
            words: "",
            icon: page.icon,
            keys: `g ${page.key}`,
            group: groups.pages,
            run: () => void navigate({ to: page.to }),
          }),
        ),
      ...(nodes?.items ?? []).map(
        (node): Entry => ({
          id: `node:${node.id}`,
          title: printable(node.givenName),
          note: node.ipAddresses[0],
          words: node.ipAddresses.join(" "),
          icon: Server,
          group: groups.nodes,
          run: () => void navigate({ to: "/nodes/$id", params: { id: node.id } }),
        }),
      ),
      ...tags.map(
        (tag): Entry => ({
          id: tag,
          title: tag,
          words: "",
          icon: Tag,
          group: groups.tags,
          run: () => void navigate({ to: "/nodes", search: { q: tag } as never }),
        }),
      ),
      ...(users?.items ?? []).map(
        (user): Entry => ({
          id: `user:${user.id}`,
          title: printable(user.name),
          note: printable(user.displayName),
          words: user.email,
          icon: UserIcon,
          group: groups.users,
          run: () => void navigate({ to: "/users/$id", params: { id: user.id } }),
        }),
      ),
      ...keysAndRules,
    ];
  }, [here, creates, nodes, users, keysAndRules, can, navigate]);
}

/** What can be created, from any page. */
function useCreates(): Action[] {
  const navigate = useNavigate();
  const can = useCan();
  const users = useWrites("users:write");
  const keys = useWrites("preauthkeys:write");
  const apiKeys = useWrites("apikeys:write");
  const mayAdd = keys.offered || can("logins:write");
  const may = [mayAdd, users.offered && users.now, keys.offered && keys.now, apiKeys.offered && apiKeys.now].join();
  return useMemo(() => {
    const t = text.shell.create;
    const create = { create: "1" } as never;
    const words = ["new"];
    const all: Action[] = [
      { id: "nodes.add", title: t.device, words: ["new", "create", "join"], run: () => navigate({ to: "/nodes/new" }) },
      { id: "users.add", title: t.user, words, run: () => navigate({ to: "/users", search: create }) },
      { id: "keys.create", title: t.key, words, run: () => navigate({ to: "/keys", search: create }) },
      {
        id: "apikeys.create",
        title: t.apiKey,
        words,
        run: () => navigate({ to: "/settings/api-keys", search: create }),
      },
    ];
    const allowed = may.split(",");
    return all.filter((_, i) => allowed[i] === "true").map((each) => ({ ...each, icon: Plus }));
  }, [may, navigate]);
}

/** Actions on the nodes that match the query, which open the dialogs of their menus. */
function useNodeWork(query: string): Entry[] {
  const { data } = useNodes();
  const start = useNodeActions();
  const { offered, now } = useWrites("nodes:write");
  const may = offered && now;
  return useMemo(() => (may ? nodeWork(data?.items ?? [], query, start) : []), [may, data, query, start]);
}

/** Entries that are loaded only when the palette opens, because few people look for them. */
function useKeysAndRules(): Entry[] {
  const navigate = useNavigate();
  const can = useCan();
  const { data: preAuthKeys } = useQuery({ ...preAuthKeysQuery, enabled: can("preauthkeys:read") });
  const { data: apiKeys } = useQuery({ ...apiKeysQuery, enabled: can("apikeys:read") });
  const { data: policy } = usePolicy();
  return useMemo(() => {
    const groups = text.shell.paletteGroups;
    const bare = (key: string) => key.replace(/^fl[a-z]_|_\*\*\*$/g, "");
    return [
      ...rulesOf(policy?.policy?.policy ?? "").map(
        (rule): Entry => ({
          id: `rule:${rule.line}`,
          title: printable(rule.words, 120),
          note: text.shell.line(rule.line),
          words: "rule",
          icon: ScrollText,
          group: groups.rules,
          run: () => void navigate({ to: "/policy", search: { line: String(rule.line) } as never }),
        }),
      ),
      ...(preAuthKeys?.items ?? []).map(
        (key): Entry => ({
          id: `preauthkey:${key.id}`,
          title: bare(key.key),
          note: printable(key.aclTags.join(" ") || (key.user?.name ?? "")),
          words: `${key.key} pre-auth`,
          icon: KeyRound,
          group: groups.keys,
          run: () => void navigate({ to: "/keys", search: { tab: "all", key: key.id } as never }),
        }),
      ),
      ...(apiKeys?.items ?? []).map(
        (key): Entry => ({
          id: `apikey:${key.id}`,
          title: bare(key.prefix),
          note: text.shell.apiKey(key.role),
          words: `${key.prefix} api`,
          icon: KeyRound,
          group: groups.keys,
          run: () => void navigate({ to: "/settings/api-keys", search: { tab: "all", q: bare(key.prefix) } as never }),
        }),
      ),
    ];
  }, [preAuthKeys, apiKeys, policy, navigate]);
}

function recall(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "[]");
  } catch {
    return [];
  }
}

function remember(id: string) {
  try {
    sessionStorage.setItem(place, JSON.stringify([id, ...recall().filter((each) => each !== id)].slice(0, 5)));
  } catch {
    // Without storage there are no recent entries.
  }
}
