import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { Shell } from "@/shell";
import { NotFound, PageFailed } from "@/shell/failures";
import { readSearch, type Search, writeSearch } from "./search";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: PageFailed,
  validateSearch: (search: Record<string, unknown>): Search => search as Search,
});

const under = { getParentRoute: () => root };

/** The pages. The console has the same list, to answer others with 404 (console/bff). Each folder is one chunk. */
const pages = [
  createRoute({ ...under, path: "/", component: lazyRouteComponent(() => import("@/pages/overview"), "OverviewPage") }),
  createRoute({ ...under, path: "/nodes", component: lazyRouteComponent(() => import("@/pages/nodes"), "NodesPage") }),
  createRoute({
    ...under,
    path: "/nodes/new",
    component: lazyRouteComponent(() => import("@/pages/add-device"), "AddDevicePage"),
  }),
  createRoute({
    ...under,
    path: "/nodes/$id",
    component: lazyRouteComponent(() => import("@/pages/node"), "NodePage"),
  }),
  createRoute({ ...under, path: "/users", component: lazyRouteComponent(() => import("@/pages/users"), "UsersPage") }),
  createRoute({
    ...under,
    path: "/users/$id",
    component: lazyRouteComponent(() => import("@/pages/user"), "UserPage"),
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
    component: lazyRouteComponent(() => import("@/pages/policy"), "PolicyPage"),
  }),
  createRoute({
    ...under,
    path: "/policy/versions",
    component: lazyRouteComponent(() => import("@/pages/policy-versions"), "PolicyVersionsPage"),
  }),
  createRoute({
    ...under,
    path: "/policy/versions/$version",
    component: lazyRouteComponent(() => import("@/pages/policy-versions"), "PolicyVersionPage"),
  }),
  createRoute({
    ...under,
    path: "/access",
    component: lazyRouteComponent(() => import("@/pages/access"), "AccessPage"),
  }),
  createRoute({
    ...under,
    path: "/timeline",
    component: lazyRouteComponent(() => import("@/pages/timeline"), "TimelinePage"),
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
    path: "/settings/dns",
    component: lazyRouteComponent(() => import("@/pages/dns"), "DNSPage"),
  }),
];

export const router = createRouter({
  routeTree: root.addChildren(pages),
  basepath: "/admin",
  trailingSlash: "preserve",
  parseSearch: readSearch,
  stringifySearch: writeSearch,
  defaultPreload: "intent",
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
