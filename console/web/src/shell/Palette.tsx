import { useNavigate } from "@tanstack/react-router";
import { Command } from "cmdk";
import { type LucideIcon, Search, Server, Tag, User as UserIcon, Zap } from "lucide-react";
import { Dialog } from "radix-ui";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useCan, useNodes, useUsers } from "@/api";
import { printable, text } from "@/text";
import { Kbd } from "@/ui";
import { returnFocus } from "@/ui/focus";
import { useAllActions } from "./actions";
import { shown } from "./KeyHelp";
import { accessPages, mainPages } from "./pages";

interface Entry {
  id: string;
  title: string;
  note?: string;
  words: string;
  icon: LucideIcon;
  keys?: string;
  group: string;
  run(): void;
}

const most = 8;
const place = "fairlead.recent";

/** Goes to any node, user or page and runs any action. What was used lately comes first. */
export default function Palette({ onClose }: { onClose(): void }) {
  const [typed, setTyped] = useState("");
  const query = useDeferredValue(typed.trim().toLowerCase());
  const entries = useEntries();
  const groups = useMemo(() => found(entries, query), [entries, query]);
  const first = groups[0] ? markOf(groups[0][0], groups[0][1][0]) : "";
  const [chosen, setChosen] = useState(first);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was typed chooses the first anew
  useEffect(() => setChosen(first), [first, query]);
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-50 bg-black/40 dark:bg-black/60" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={returnFocus}
          className="layer-in fixed top-[10vh] left-1/2 z-50 w-[calc(100vw-32px)] max-w-[560px] -translate-x-1/2 overflow-hidden rounded-lg border border-line-strong bg-raised shadow-bar outline-none"
        >
          <Dialog.Title className="sr-only">{text.shell.paletteTitle}</Dialog.Title>
          <Command label={text.shell.paletteTitle} shouldFilter={false} loop value={chosen} onValueChange={setChosen}>
            <div className="flex h-12 items-center gap-2.5 border-b border-line px-4">
              <Search className="size-4 shrink-0 text-ink-3" aria-hidden />
              <Command.Input
                value={typed}
                onValueChange={setTyped}
                placeholder={text.shell.palette}
                className="h-full min-w-0 flex-1 bg-transparent text-14 outline-none max-md:text-[16px]"
              />
              <Kbd>Esc</Kbd>
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
                        remember(entry.id);
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
                        <span className="ml-auto flex gap-1" aria-hidden>
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

/** One entry may stand in two groups. */
const markOf = (group: string, entry: Entry | undefined) => `${group} ${entry?.id ?? ""}`.toLowerCase();

function useEntries(): Entry[] {
  const navigate = useNavigate();
  const can = useCan();
  const actions = useAllActions();
  const { data: nodes } = useNodes();
  const { data: users } = useUsers();
  return useMemo(() => {
    const groups = text.shell.paletteGroups;
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
    ];
  }, [actions, nodes, users, can, navigate]);
}

/** The best of each group: names that begin with what was typed, then those that hold it. */
function found(entries: readonly Entry[], query: string): [string, Entry[]][] {
  const groups = new Map<string, Entry[]>();
  if (!query) {
    const recent = recall().flatMap((id) => entries.find((entry) => entry.id === id) ?? []);
    if (recent.length > 0) groups.set(text.shell.paletteGroups.recent, recent);
  }
  const rank = (entry: Entry) => {
    const title = entry.title.toLowerCase();
    if (title.startsWith(query)) return 0;
    if (title.includes(query)) return 1;
    return entry.words.toLowerCase().includes(query) ? 2 : 3;
  };
  const ranked = entries.map((entry) => ({ entry, rank: query ? rank(entry) : 0 })).filter((r) => r.rank < 3);
  ranked.sort((a, b) => a.rank - b.rank);
  for (const { entry } of ranked) {
    const list = groups.get(entry.group) ?? [];
    if (list.length < most) groups.set(entry.group, [...list, entry]);
  }
  return [...groups];
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
    // Without storage there is nothing recent.
  }
}
