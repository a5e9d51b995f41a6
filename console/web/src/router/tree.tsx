import {
  type AsyncRouteComponent,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { type Right, useCan, useSession } from "@/api/session";
import { MemberShell, Shell } from "@/shell";
import { NotFound, PageFailed, PageWaiting } from "@/shell/failures";
import { NotAllowed } from "@/ui";
import { readSearch, type Search, writeSearch } from "./search";

const root = createRootRoute({
  component: () => (useSession().key.role === "member" ? <MemberShell /> : <Shell />),
  notFoundComponent: NotFound,
  errorComponent: PageFailed,
  validateSearch: (search: Record<string, unknown>): Search => search as Search,
});

const under = { getParentRoute: () => root };

/** A page that requires a permission, and says so if it is missing. It is preloaded like other pages. */
const needs = (right: Right, Page: AsyncRouteComponent<object>) =>
  Object.assign(() => (useCan()(right) ? <Page /> : <NotAllowed scope={right} />), { preload: Page.preload });

/**
 * The pages. The console has the same list, to respond to other paths with 404 (console/bff). Each folder is one chunk.
 */
const pages = [
  createRoute({ ...under, path: "/", component: lazyRouteComponent(() => import("@/pages/overview"), "OverviewPage") }),
  createRoute({ ...under, path: "/my", component: lazyRouteComponent(() => import("@/pages/my"), "MyPage") }),
  createRoute({
    ...under,
    path: "/nodes",
    component: needs(
      "nodes:read",
      lazyRouteComponent(() => import("@/pages/nodes"), "NodesPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/nodes/new",
    component: lazyRouteComponent(() => import("@/pages/add-device"), "AddDevicePage"),
  }),
  createRoute({
    ...under,
    path: "/nodes/$id",
    component: needs(
      "nodes:read",
      lazyRouteComponent(() => import("@/pages/node"), "NodePage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/users",
    component: needs(
      "users:read",
      lazyRouteComponent(() => import("@/pages/users"), "UsersPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/users/$id",
    component: needs(
      "users:read",
      lazyRouteComponent(() => import("@/pages/user"), "UserPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/routes",
    component: lazyRouteComponent(() => import("@/pages/routes"), "RoutesPage"),
  }),
  createRoute({ ...under, path: "/keys", component: lazyRouteComponent(() => import("@/pages/keys"), "KeysPage") }),
  createRoute({
    ...under,
    path: "/policy",
    component: needs(
      "policy:read",
      lazyRouteComponent(() => import("@/pages/policy"), "PolicyPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/policy/versions",
    component: needs(
      "policy:read",
      lazyRouteComponent(() => import("@/pages/policy-versions"), "PolicyVersionsPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/policy/versions/$version",
    component: needs(
      "policy:read",
      lazyRouteComponent(() => import("@/pages/policy-versions"), "PolicyVersionPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/access",
    component: needs(
      "policy:read",
      lazyRouteComponent(() => import("@/pages/access"), "AccessPage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/timeline",
    component: needs(
      "history:read",
      lazyRouteComponent(() => import("@/pages/timeline"), "TimelinePage"),
    ),
  }),
  createRoute({
    ...under,
    path: "/requests",
    component: lazyRouteComponent(() => import("@/pages/requests"), "RequestsPage"),
  }),
  createRoute({
    ...under,
    path: "/settings",
    beforeLoad: () => {
      throw redirect({ to: "/settings/api-keys", replace: true });
    },
  }),
  createRoute({
    ...under,
    path: "/settings/api-keys",
    component: lazyRouteComponent(() => import("@/pages/api-keys"), "ApiKeysPage"),
  }),
  createRoute({
    ...under,
    path: "/settings/sessions",
    component: lazyRouteComponent(() => import("@/pages/sessions"), "SessionsPage"),
  }),
  createRoute({
    ...under,
    path: "/settings/appearance",
    component: lazyRouteComponent(() => import("@/pages/appearance"), "AppearancePage"),
  }),
  createRoute({
    ...under,
    path: "/settings/server",
    component: lazyRouteComponent(() => import("@/pages/server"), "ServerPage"),
  }),
  createRoute({
    ...under,
    path: "/settings/cluster",
    component: lazyRouteComponent(() => import("@/pages/cluster"), "ClusterPage"),
  }),
  createRoute({
    ...under,
    path: "/cluster",
    beforeLoad: () => {
      throw redirect({ to: "/settings/cluster", replace: true });
    },
  }),
  createRoute({
    ...under,
    path: "/settings/dns",
    component: lazyRouteComponent(() => import("@/pages/dns"), "DNSPage"),
  }),
  createRoute({
    ...under,
    path: "/settings/webhooks",
    component: lazyRouteComponent(() => import("@/pages/webhooks"), "WebhooksPage"),
  }),
];

export const router = createRouter({
  routeTree: root.addChildren(pages),
  basepath: "/admin",
  trailingSlash: "preserve",
  parseSearch: readSearch,
  stringifySearch: writeSearch,
  defaultPreload: "intent",
  // Without this, the whole console stays blank until the code of the first page has loaded.
  defaultPendingComponent: PageWaiting,
  defaultPendingMs: 150,
  defaultPendingMinMs: 0,
  // If a page throws, the navigation rail stays.
  defaultErrorComponent: PageFailed,
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
