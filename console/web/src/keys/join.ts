export type JoinSystem = "linux" | "macos" | "windows";

/** The command with which a device joins by a key. */
export function joinCommand(system: JoinSystem, server: string, key: string): string {
  const command = `tailscale up --login-server=${server} --auth-key=${key}`;
  return system === "linux" ? `sudo ${command}` : command;
}

/** Whether other machines cannot reach the server under this address. */
export const onlyHere = (server: string) => /^https?:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/.test(server);
