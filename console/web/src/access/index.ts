/** Who can reach whom, as computed by the server: the queries, their results, and the components that show them. */
export {
  type AccessRow,
  type Change,
  changeOf,
  lineOf,
  linesOf,
  type RuleUse,
  rowId,
  rowsOf,
  ruleText,
  shortPorts,
  splitName,
  withComments,
} from "./model";
export { NodeAccess, UserAccess } from "./NodeAccess";
export { ChangeSign, PrincipalName, RuleLines } from "./parts";
export { type Asked, accessQuery, whyQuery } from "./query";
export { sinceQuery } from "./since";
