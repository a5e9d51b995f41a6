import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./client";

/**
 * The cache of this tab. The event stream keeps it up to date, so nothing is refetched on a timer or when the window
 * gets the focus.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 30 * 60_000,
      // Patches keep unchanged objects as they are; comparing thousands of nodes again would find no differences.
      structuralSharing: false,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      networkMode: "always",
      retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.unreachable),
      retryDelay: (attempt) => Math.min(1000 * 2 ** attempt, 8000),
    },
    mutations: { networkMode: "always", retry: false },
  },
});
