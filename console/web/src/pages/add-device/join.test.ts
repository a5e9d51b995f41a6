import { expect, test } from "vitest";
import type { Node } from "@/api";
import { arrivals, joinLine, notAPrefix } from "./join";

const plain = { hostname: "", routes: "", exit: false, ssh: false };
const url = "https://mesh.example.com";

test("a command has what was asked for and no more", () => {
  expect(joinLine("linux", url, "", plain)).toBe(`sudo tailscale up --login-server=${url}`);
  expect(
    joinLine("linux", url, "flp_k", { hostname: "Web Fra 3", routes: "10.0.0.0/8, fd00::/8", exit: true, ssh: true }),
  ).toBe(
    `sudo tailscale up --login-server=${url} --auth-key=flp_k --hostname=web-fra-3 --advertise-routes=10.0.0.0/8,fd00::/8 --advertise-exit-node --ssh`,
  );
  expect(joinLine("windows", url, "k", { ...plain, ssh: true })).toBe(
    `tailscale up --login-server=${url} --auth-key=k`,
  );
});

test("what is typed cannot become another command", () => {
  const line = joinLine("linux", url, "", { ...plain, hostname: "a; reboot", routes: "10.0.0.0/8;reboot $(x)/8" });
  expect(line).toBe(`sudo tailscale up --login-server=${url} --hostname=a-reboot`);
});

test.each([
  ["10.0.0.0/8 fd00::/64", undefined],
  ["10.0.0.0", "10.0.0.0"],
  ["10.0.0.0/33", "10.0.0.0/33"],
  ["fd00::/129", "fd00::/129"],
  ["web", "web"],
])("%s has the wrong network %s", (typed, wrong) => expect(notAPrefix(typed)).toBe(wrong));

test("only who came since, and in the way that was shown, has arrived", () => {
  const node = (id: string, key: string | null) => ({ id, preAuthKey: key && { id: key } }) as unknown as Node;
  const nodes = [node("1", "7"), node("2", "7"), node("3", "8"), node("4", null)];
  const before = new Set(["1"]);
  expect(arrivals(nodes, before, "7").map((n) => n.id)).toEqual(["2"]);
  expect(arrivals(nodes, before, null).map((n) => n.id)).toEqual(["4"]);
});
