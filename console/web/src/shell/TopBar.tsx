import { useNavigate } from "@tanstack/react-router";
import { clsx } from "clsx";
import {
  CircleQuestionMark,
  KeyRound,
  Laptop,
  LogOut,
  Menu as MenuIcon,
  Monitor,
  MonitorSmartphone,
  Moon,
  Search,
  Sun,
  UserRound,
} from "lucide-react";
import { useRef } from "react";
import { useConnection, useSession } from "@/api";
import { text } from "@/text";
import { Badge, clock, IconButton, Kbd, Menu, MenuGroup, MenuItem, Tip, usePreferences } from "@/ui";
import { nextTheme } from "@/ui/preferences";
import { useActions } from "./actions";

const pictures = { system: Monitor, light: Sun, dark: Moon };

export function TopBar({ onPalette, onMenu, onHelp }: { onPalette(): void; onMenu(): void; onHelp(): void }) {
  return (
    <header className="flex h-14 shrink-0 items-center gap-3 border-b border-line bg-surface px-6 max-md:gap-1 max-md:px-3">
      <IconButton label={text.shell.openMenu} icon={MenuIcon} onClick={onMenu} className="md:hidden" />
      <button
        type="button"
        onClick={onPalette}
        aria-keyshortcuts="Control+K Meta+K"
        className="flex h-8 w-[360px] max-w-full min-w-0 items-center gap-2 rounded-md border border-line bg-canvas px-2.5 text-left text-13 text-ink-3 hover:border-line-strong max-md:w-auto max-md:flex-1"
      >
        <Search className="size-4 shrink-0" aria-hidden />
        <span className="flex-1 truncate max-md:hidden">{text.shell.palette}</span>
        <span className="flex-1 truncate md:hidden">{text.shell.paletteShort}</span>
        <span className="max-md:hidden" aria-hidden>
          <Kbd>{mac ? "⌘" : "Ctrl"} K</Kbd>
        </span>
      </button>
      <div className="ml-auto flex items-center gap-2 text-12 text-ink-2 max-md:gap-1">
        <LiveMark />
        <ReadOnlyBadge />
        <IconButton
          label={text.shell.help}
          icon={CircleQuestionMark}
          onClick={onHelp}
          aria-keyshortcuts="?"
          className="max-md:hidden"
        />
        <ThemeButton />
        <KeyMenu />
      </div>
    </header>
  );
}

export function ThemeButton() {
  const { theme } = usePreferences();
  return <IconButton label={text.shell.theme[theme]} icon={pictures[theme]} onClick={nextTheme} />;
}

/** Says that the session's key is read-only, where users would look for actions. */
export function ReadOnlyBadge({ className = "max-md:hidden" }: { className?: string }) {
  const { key, person } = useSession();
  if (key.role !== "read") return null;
  return (
    <Tip label={person ? text.shell.readOnlyPerson : text.shell.readOnlyTip}>
      <span className={className}>
        <Badge tone="warn">{text.shell.readOnly}</Badge>
      </span>
    </Tip>
  );
}

const mac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.userAgent);

export function LiveMark() {
  const connection = useConnection();
  const { timeZone } = usePreferences();
  const words = {
    live: text.shell.live,
    asleep: text.shell.asleep,
    polled: text.shell.polled,
    reconnecting: text.shell.reconnecting,
    offline: connection.name === "offline" ? text.shell.offlineSince(clock(connection.since, timeZone)) : "",
  }[connection.name];
  return (
    <span className="flex items-center gap-1.5 px-1 whitespace-nowrap" role="status">
      <span
        data-mark
        className={clsx(
          "size-2 rounded-full",
          {
            live: "bg-tick",
            asleep: "bg-control",
            polled: "bg-control",
            reconnecting: "bg-control",
            offline: "bg-warn",
          }[connection.name],
        )}
        aria-hidden
      />
      {words}
    </span>
  );
}

export function KeyMenu() {
  const { key, person, csrf } = useSession();
  const form = useRef<HTMLFormElement>(null);
  const navigate = useNavigate();
  const short = key.prefix.replace(/^flk_|_\*\*\*$/g, "").slice(0, 5);
  const signedIn = person ? text.shell.signedInAs : text.shell.signedIn;
  const Picture = person ? UserRound : KeyRound;
  const leave = () => form.current?.requestSubmit();
  useActions([
    { id: "sign-out", title: text.shell.signOut, icon: LogOut, words: ["log out", "leave"], rank: 2, run: leave },
  ]);
  const days = key.expiration ? Math.floor((Date.parse(key.expiration) - Date.now()) / 864e5) : null;
  const left = days === null ? "" : text.shell.keyExpires(days);
  return (
    <>
      <Menu
        trigger={
          <button
            type="button"
            className="flex h-8 items-center gap-2 rounded-md px-2 text-12 hover:bg-sunken data-[state=open]:bg-sunken"
          >
            <Picture className="size-3.5 text-ink-3" aria-hidden />
            <span className="sr-only">{signedIn}</span>
            <span className="max-w-48 truncate whitespace-nowrap max-md:hidden">{person || text.shell.key(short)}</span>
            <span
              className={clsx(
                "-ml-1 whitespace-nowrap max-lg:hidden",
                days !== null && days < 14 ? "text-warn" : "text-ink-3",
              )}
            >
              {left}
            </span>
          </button>
        }
      >
        <MenuGroup label={signedIn}>
          <div className={clsx("px-2 pb-1 break-all", person ? "text-13" : "font-mono text-12")}>
            {person || key.prefix}
          </div>
          <div className="px-2 pb-2 text-12 text-ink-2">
            {[text.shell.role[key.role], ...key.scopes, left].filter(Boolean).join(" · ")}
          </div>
        </MenuGroup>
        {person && (
          <MenuItem icon={Laptop} onSelect={() => void navigate({ to: "/my" })}>
            {text.shell.myDevices}
          </MenuItem>
        )}
        {person && (
          <MenuItem icon={MonitorSmartphone} onSelect={() => location.assign("/admin/account")}>
            {text.shell.sessions}
          </MenuItem>
        )}
        <MenuItem icon={LogOut} onSelect={leave}>
          {text.shell.signOut}
        </MenuItem>
      </Menu>
      <form ref={form} method="post" action="/admin/logout" hidden>
        <input type="hidden" name="csrf" value={csrf} />
      </form>
    </>
  );
}
