/** Who reaches whom, by the answer of the server: how it is asked, what it says, and the parts that show it. */
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
