import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Keyboard, MonitorCog, Settings } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";

import { ApiError, useCan, useConnection, usePartLists } from "@/api";
import { NodeActionsProvider } from "@/nodes";
import { PolicyTrial } from "@/policy/PolicyTrial";

import { text } from "@/text";
import { Banner, Button, LiveRegions, StatusLine } from "@/ui";
import { holdKeys, releaseKeys } from "@/ui/heldKeys";
import { nextTheme } from "@/ui/preferences";
import { useKeyboard, useShortcuts } from "@/ui/shortcuts";
import { useActions } from "./actions";
import { KeyHelp } from "./KeyHelp";
import { usePageChange } from "./pageChange";
import { accessPages, mainPages } from "./pages";
import { OfflineBanner, SkipLink } from "./parts";
import { Rail, RailSheet } from "./Rail";
import { TopBar } from "./TopBar";

const loadPalette = () => import("./Palette");
const Palette = lazy(loadPalette);

export function Shell() {
  const [layer, setLayer] = useState<"palette" | "help" | "menu" | null>(null);
  const close = () => setLayer(null);
  // Load the palette before somebody opens it.
  useEffect(() => {
    const soon = setTimeout(() => void loadPalette().catch(() => {}), 1000);
    return () => clearTimeout(soon);
  }, []);
  useKeyboard();
  usePageChange();
  // The palette may still have to be loaded: what is typed from now on is for its field.
  const openPalette = () => {
    holdKeys(close);
    setLayer("palette");
  };
  useEffect(() => {
    if (layer !== "palette") releaseKeys();
  }, [layer]);
  useEffect(() => () => void releaseKeys(), []);
  useShellKeys(
    () => (layer === "palette" ? close() : openPalette()),
    () => setLayer("help"),
  );
  const path = useRouterState({ select: (state) => state.location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigating to another page closes the menu
  useEffect(() => setLayer((open) => (open === "menu" ? null : open)), [path]);
  return (
    <div className="grid h-dvh grid-cols-[216px_minmax(0,1fr)] grid-rows-[minmax(0,1fr)] bg-canvas text-ink max-md:grid-cols-[minmax(0,1fr)]">
      <SkipLink />
      <Rail />
      <div className="flex min-h-0 min-w-0 flex-col">
        <TopBar onPalette={openPalette} onMenu={() => setLayer("menu")} onHelp={() => setLayer("help")} />
        <OfflineBanner />
        <PartBanner />
        <PolicyTrial />
        <main id="main" tabIndex={-1} className="min-h-0 flex-1 outline-none">
          <Suspense>
            <Outlet />
          </Suspense>
        </main>
      </div>
      <NodeActionsProvider>
        {layer === "palette" && (
          <Suspense>
            <Palette onClose={close} />
          </Suspense>
        )}
      </NodeActionsProvider>
      {layer === "help" && <KeyHelp onClose={close} />}
      {layer === "menu" && <RailSheet onClose={close} />}
      <StatusLine />
      <LiveRegions />
    </div>
  );
}

function useShellKeys(palette: () => void, help: () => void) {
  const navigate = useNavigate();
  const can = useCan();
  const groups = text.shell.groups;
  useShortcuts([
    { keys: "Mod+K", label: text.shell.shortcuts.palette, group: groups.everywhere, run: palette },
    { keys: "?", label: text.shell.shortcuts.help, group: groups.everywhere, run: help },
    { keys: "Esc", label: text.shell.shortcuts.close, group: groups.everywhere },
    ...[...mainPages, ...accessPages]
      .filter((page) => !page.right || can(page.right))
      .map((page) => ({
        keys: `g ${page.key}`,
        label: page.title,
        group: groups.go,
        run: () => void navigate({ to: page.to }),
      })),
  ]);
  const settings = (Object.keys(text.shell.settingsPages) as (keyof typeof text.shell.settingsPages)[]).map((to) => ({
    id: to,
    title: text.shell.settingsPages[to],
    icon: Settings,
    rank: 1 as const,
    run: () => void navigate({ to }),
  }));
  useActions([
    ...settings,
    { id: "help", title: text.shell.help, icon: Keyboard, keys: "?", words: ["keys"], rank: 1, run: help },
    {
      id: "theme",
      title: text.shell.shortcuts.theme,
      icon: MonitorCog,
      words: ["dark", "light"],
      rank: 1,
      run: nextTheme,
    },
  ]);
}

/** An incomplete list looks like a complete one, so a banner has to say that it is not. */
function PartBanner() {
  const { names, error, retry } = usePartLists();
  const offline = useConnection().name === "offline";
  if (names.length === 0 || offline) return null;
  return (
    <div role="alert">
      <Banner tone="warn" action={<Button onClick={retry}>{text.common.retry}</Button>}>
        {text.shell.partBanner(names.map((name) => text.shell.lists[name]))}{" "}
        {error instanceof ApiError && error.requestId && text.common.reference(error.requestId)}
      </Banner>
    </div>
  );
}
