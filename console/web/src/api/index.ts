/**
 * All communication with the server: typed calls (client), the contents of the query cache and how they are read
 * (resources), how the event stream keeps them up to date (stream/), and who is signed in (session). No page calls
 * fetch itself.
 */
export { watchUse } from "./attended";
export { currentOf, type IfMatch, takenBack, undone, useEtag } from "./changes";
export { type Answer, ApiError, api, newRequestName } from "./client";
export type { Collection } from "./collection";
export * from "./history";
export { queryClient } from "./query";
export * from "./resources";
export { continueWith, SessionProvider, useCan, useSession } from "./session";
export type { AuditFilter } from "./stream/audit";
export { LiveProvider, useConnection, useLive } from "./stream/live";
export type * from "./types";
