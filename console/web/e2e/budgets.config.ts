import { defineConfig } from "vitest/config";

/** Runs the measurements on their own. TestFigurePages in `make figures` uses it. */
export default defineConfig({
  test: { environment: "node", include: ["e2e/budgets.e2e.ts"], testTimeout: 120_000, hookTimeout: 300_000 },
});
