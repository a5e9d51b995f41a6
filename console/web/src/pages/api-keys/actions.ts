import { createContext, useContext } from "react";
import type { ApiKey } from "@/api";

/** Something that a person begins to do with API keys; a dialog asks for the rest. */
export type Action =
  | { name: "create" }
  | { name: "rotate" | "revoke"; key: ApiKey }
  | { name: "delete"; keys: readonly ApiKey[] };

/** Holds how the page begins an action. */
export const Start = createContext<(action: Action) => void>(() => {});

export const useApiKeyActions = () => useContext(Start);
