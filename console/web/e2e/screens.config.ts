import { defineConfig } from "vitest/config";

/** Takes screenshots of every screen. `make screens` runs it. */
export default defineConfig({
  test: { environment: "node", include: ["e2e/pictures.ts"], testTimeout: 60_000, hookTimeout: 240_000 },
});
