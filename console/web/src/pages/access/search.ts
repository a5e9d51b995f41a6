import type { accessMap } from "@/text/access";

/** The default search parameters. */
export const usual = {
  view: "matrix",
  by: "groups",
  from: "",
  to: "",
  port: "",
  proto: "",
  cell: "",
  rule: "",
  focus: "",
  node: "",
  q: "",
  sort: "",
  cols: "",
  draft: "",
  /** "all" shows each network separately. */
  routes: "",
  /** "all" draws every path. */
  paths: "",
};
export type Search = typeof usual;
export type SetSearch = (change: Partial<Search>, how?: "replace" | "push") => void;
export type View = keyof typeof accessMap.views;
