import { access } from "./en/access";
import { activity } from "./en/activity";
import { common } from "./en/common";
import { device } from "./en/device";
import { keys } from "./en/keys";
import { node } from "./en/node";
import { nodes } from "./en/nodes";
import { overview } from "./en/overview";
import { policy } from "./en/policy";
import { requests } from "./en/requests";
import { routes } from "./en/routes";
import { settings } from "./en/settings";
import { shell } from "./en/shell";
import { table } from "./en/table";
import { timeline } from "./en/timeline";
import { users } from "./en/users";

/** One file for each page, so that pages can be written at the same time. */
export const en = {
  activity,
  common,
  shell,
  table,
  overview,
  nodes,
  node,
  device,
  users,
  routes,
  keys,
  policy,
  access,
  timeline,
  requests,
  settings,
};
