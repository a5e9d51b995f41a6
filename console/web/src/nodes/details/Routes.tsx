import { Route as RouteIcon } from "lucide-react";
import { useId } from "react";
import { type Node, useNodes } from "@/api";
import { routeId, turnCall, useTurnRoutes } from "@/routes";
import { printable, text } from "@/text";
import { ApiSteps, Badge, Command, Empty, Switch, type Tone, useWrites } from "@/ui";
import { type NodeRoute, type RouteState, routesOf } from "../routes";

const t = text.node.routes;
const tones: Record<RouteState, Tone> = {
  waiting: "warn",
  serving: "ok",
  standby: "plain",
  offline: "plain",
  unoffered: "plain",
};

/** The routes that a node advertises, each with a switch. */
export function NodeRoutes({ node, deleted }: { node: Node; deleted: boolean }) {
  const { data } = useNodes();
  const routes = routesOf(node, data?.items ?? []);
  if (routes.length === 0)
    return (
      <Empty icon={RouteIcon} title={t.none}>
        <div className="space-y-3">
          <p>{t.makeRouter}</p>
          <Command value={t.routerCommand} what={t.command} />
          <p>{t.makeExit}</p>
          <Command value={t.exitCommand} what={t.command} />
        </div>
      </Empty>
    );
  return (
    <div className="space-y-2">
      <ul className="divide-y divide-hair rounded-lg border border-line bg-surface">
        {routes.map((route) => (
          <Line key={route.prefixes.join()} node={node} route={route} deleted={deleted} />
        ))}
      </ul>
      {!deleted && (
        <div className="flex flex-wrap">
          <Calls node={node} routes={routes} />
        </div>
      )}
    </div>
  );
}

function Calls({ node, routes }: { node: Node; routes: readonly NodeRoute[] }) {
  if (!useWrites("routes:write").offered) return null;
  return (
    <ApiSteps
      steps={routes.map((route) => {
        const on = route.state === "waiting";
        const label = labelOf(route);
        return { title: on ? t.approve(label) : t.disable(label), ...turnCall(node, route.prefixes, on) };
      })}
    />
  );
}

const labelOf = (route: NodeRoute) => (route.exit ? t.exit : (route.prefixes[0] ?? ""));

function Line({ node, route, deleted }: { node: Node; route: NodeRoute; deleted: boolean }) {
  const { offered, why } = useWrites("routes:write");
  const turn = useTurnRoutes();
  const row = routeId(node, route.prefixes[0] ?? "");
  const id = useId();
  const label = labelOf(route);
  return (
    <li className="flex items-center gap-4 px-4 py-3">
      <div className="min-w-0 flex-1">
        <div id={id} className={route.exit ? "font-medium" : "font-mono text-13 font-medium break-all"}>
          {label}
        </div>
        <div className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-12 text-ink-2">
          <Badge tone={tones[route.state]}>{t.states[route.state]}</Badge>
          <span>{route.exit ? t.exitBody : others(route)}</span>
        </div>
      </div>
      {offered && !deleted && (
        <Switch
          label={t.approve(label)}
          checked={route.state !== "waiting"}
          why={why}
          onChange={(on) => turn(on, (other) => other.id === row)}
        />
      )}
    </li>
  );
}

const others = (route: NodeRoute) =>
  route.others.length > 0
    ? t.also(
        route.others
          .slice(0, 3)
          .map((node) => printable(node.givenName))
          .join(", "),
      )
    : t.only;
