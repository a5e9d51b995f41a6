import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./client";

/**
 * The cache of this tab. The event stream keeps it true, so that nothing is read again because time has passed or the
 * window was looked at.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 30 * 60_000,
      // Patches keep what they do not change as it is; comparing thousands of nodes again would find nothing.
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
