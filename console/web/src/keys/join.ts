export type JoinSystem = "linux" | "macos" | "windows";

/** The command with which a device joins using a key. */
export function joinCommand(system: JoinSystem, server: string, key: string): string {
  const command = `tailscale up --login-server=${server} --auth-key=${key}`;
  return system === "linux" ? `sudo ${command}` : command;
}

/** Whether the server address is a loopback address, which other machines cannot reach. */
export const onlyHere = (server: string) => /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/.test(server);
