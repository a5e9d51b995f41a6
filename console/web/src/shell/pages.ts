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
  /** After g. */
  key: string;
  right?: Right;
}

/** The rail, and where `g` and the palette go. */
export const mainPages: PageLink[] = [
  { to: "/", title: text.overview.title, icon: LayoutDashboard, key: "o" },
  { to: "/nodes", title: text.nodes.title, icon: Server, key: "n", right: "nodes:read" },
  { to: "/users", title: text.users.title, icon: Users, key: "u", right: "users:read" },
  { to: "/routes", title: text.routes.title, icon: Route, key: "r", right: "routes:read" },
  { to: "/keys", title: text.keys.title, icon: KeyRound, key: "k", right: "preauthkeys:read" },
  { to: "/requests", title: text.requests.title, icon: Inbox, key: "q", right: "logins:read" },
];

export const accessPages: PageLink[] = [
  { to: "/policy", title: text.policy.title, icon: ScrollText, key: "p", right: "policy:read" },
  { to: "/access", title: text.access.title, icon: Network, key: "a", right: "policy:read" },
  { to: "/timeline", title: text.timeline.title, icon: Activity, key: "t", right: "history:read" },
];
