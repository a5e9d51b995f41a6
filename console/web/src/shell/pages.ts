import {
  Activity,
  Inbox,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Network,
  Route,
  ScrollText,
  Server,
  Users,
} from "lucide-react";
import type { Right } from "@/api/session";
import { text } from "@/text";

export interface PageLink {
  to: "/" | "/nodes" | "/users" | "/routes" | "/keys" | "/requests" | "/policy" | "/access" | "/timeline";
  title: string;
  icon: LucideIcon;
  /** The key after g. */
  key: string;
  right?: Right;
}

/** The pages in the navigation, which `g` and the palette also use. */
export const mainPages: PageLink[] = [
  { to: "/", title: text.shell.pages.overview, icon: LayoutDashboard, key: "o" },
  { to: "/nodes", title: text.shell.pages.nodes, icon: Server, key: "n", right: "nodes:read" },
  { to: "/users", title: text.shell.pages.users, icon: Users, key: "u", right: "users:read" },
  { to: "/routes", title: text.shell.pages.routes, icon: Route, key: "r", right: "routes:read" },
  { to: "/keys", title: text.shell.pages.keys, icon: KeyRound, key: "k", right: "preauthkeys:read" },
  { to: "/requests", title: text.shell.pages.requests, icon: Inbox, key: "q", right: "logins:read" },
];

export const accessPages: PageLink[] = [
  { to: "/policy", title: text.shell.pages.policy, icon: ScrollText, key: "p", right: "policy:read" },
  { to: "/access", title: text.shell.pages.access, icon: Network, key: "a", right: "policy:read" },
  { to: "/timeline", title: text.shell.pages.timeline, icon: Activity, key: "t", right: "history:read" },
];
