import { createContext, useContext } from "react";
import type { ApiKey } from "@/api";

/** An action on API keys that a person starts; a dialog asks for further input. */
export type Action =
  | { name: "create" }
  | { name: "rotate" | "revoke"; key: ApiKey }
  | { name: "delete"; keys: readonly ApiKey[] };

/** Provides the function that starts an action. */
export const Start = createContext<(action: Action) => void>(() => {});

export const useApiKeyActions = () => useContext(Start);
