import { defineConfig } from "vitest/config";

/** What is measured: TestFigurePages of `make figures` runs it, alone. */
export default defineConfig({
  test: { environment: "node", include: ["e2e/budgets.e2e.ts"], testTimeout: 120_000, hookTimeout: 300_000 },
});
