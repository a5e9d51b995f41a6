import type { Node } from "@/api";
import { dnsName } from "@/nodes";

export type Kind = "person" | "server" | "many";
export type System = "linux" | "macos" | "windows" | "ios" | "android";
export type Computer = Exclude<System, "ios" | "android">;

/** The options of the key that servers join with. Devices of people sign in instead. */
export const keyOf: Record<Exclude<Kind, "person">, { reusable: boolean; ephemeral: boolean; hours: number }> = {
  server: { reusable: false, ephemeral: false, hours: 1 },
  many: { reusable: true, ephemeral: true, hours: 24 },
};

export interface JoinOptions {
  hostname: string;
  routes: string;
  exit: boolean;
  ssh: boolean;
}

const prefix =
  /^([0-9]{1,3}(\.[0-9]{1,3}){3}\/(3[0-2]|[12]?[0-9])|[0-9a-fA-F:]*:[0-9a-fA-F:.]*\/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$/;

export const prefixesOf = (typed: string) => typed.split(/[\s,]+/).filter(Boolean);
export const notAPrefix = (typed: string) => prefixesOf(typed).find((each) => !prefix.test(each));

/** The command with which a computer joins. Invalid values are omitted. */
export function joinLine(system: Computer, server: string, key: string, options: JoinOptions): string {
  const name = dnsName(options.hostname);
  const routes = prefixesOf(options.routes).filter((each) => prefix.test(each));
  const words = [
    `tailscale up --login-server=${server}`,
    key && `--auth-key=${key}`,
    name && `--hostname=${name}`,
    routes.length > 0 && `--advertise-routes=${routes.join(",")}`,
    options.exit && "--advertise-exit-node",
    // The Windows client has no SSH server.
    options.ssh && system !== "windows" && "--ssh",
  ];
  const line = words.filter(Boolean).join(" ");
  return system === "linux" ? `sudo ${line}` : line;
}

/** The nodes that are not in `before`: those that joined with the key, or without any key if there is none. */
export function arrivals(nodes: readonly Node[], before: ReadonlySet<string>, keyId: string | null): Node[] {
  return nodes.filter(
    (node) => !before.has(node.id) && (keyId ? node.preAuthKey?.id === keyId : node.preAuthKey === null),
  );
}
