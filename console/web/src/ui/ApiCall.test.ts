import { expect, test } from "vitest";
import { curlOf } from "./ApiCall";

test.each([
  [
    { method: "get", path: "/api/v1/node" } as const,
    `curl --fail-with-body -H "Authorization: Bearer $API_KEY" 'https://mesh.example.net/api/v1/node'`,
  ],
  [
    { method: "post", path: "/api/v1/user", body: { name: "o'neil $HOME" } } as const,
    `curl --fail-with-body -X POST -H "Authorization: Bearer $API_KEY" -H 'Content-Type: application/json' -d '{"name":"o'\\''neil $HOME"}' 'https://mesh.example.net/api/v1/user'`,
  ],
  [
    { method: "post", path: "/api/v1/policy/confirm", ifMatch: '"7"' } as const,
    `curl --fail-with-body -X POST -H "Authorization: Bearer $API_KEY" -H 'If-Match: "7"' 'https://mesh.example.net/api/v1/policy/confirm'`,
  ],
])("a shell runs %j as it is", (call, line) => expect(curlOf("https://mesh.example.net", call)).toBe(line));
