import type { components, paths } from "@api-types";

type Schemas = components["schemas"];

export type Node = Schemas["Node"];
export type NodeHost = Schemas["NodeHost"];
export type User = Schemas["User"];
export type PreAuthKey = Schemas["PreAuthKey"];
export type ApiKey = Schemas["ApiKey"];
export type Passkey = Schemas["Passkey"];
export type PersonSession = Schemas["Session"];
export type Route = Schemas["Route"];
export type PendingLogin = Schemas["PendingLogin"];
export type PendingSSH = Schemas["PendingSSH"];
export type DNS = Schemas["DNS"];
export type Policy = Schemas["Policy"];
export type PolicyVersion = Schemas["PolicyVersion"];
export type PolicyProblem = Schemas["PolicyProblem"];
export type PolicyEffect = Schemas["PolicyEffect"];
export type PolicyTestFailure = Schemas["PolicyTestFailure"];
export type AccessMap = Schemas["AccessMap"];
export type AccessCell = Schemas["AccessCell"];
export type AccessPrincipal = Schemas["AccessPrincipal"];
export type AccessRule = Schemas["AccessRule"];
export type AccessQuestion = Schemas["AccessQuestion"];
export type PolicyAnswer = Schemas["PolicyAnswer"];
export type PolicyFinding = Schemas["PolicyFinding"];
export type Change = Schemas["Change"];
export type Problem = Schemas["Problem"];
export type Role = Schemas["Role"];
export type NodeBuckets = Schemas["NodeBuckets"];
export type Webhook = Schemas["Webhook"];
export type WebhookDelivery = Schemas["WebhookDelivery"];
export type FailedEvent = Schemas["FailedEvent"];
export type ServerState = Schemas["ServerState"];
export type Cluster = Schemas["Cluster"];
export type ClusterReplica = Schemas["ClusterReplica"];
export type ClusterStandby = Schemas["ClusterStandby"];
export type ServerCheck = Schemas["ServerCheck"];
export type ServerRelay = Schemas["ServerRelay"];
export type Relay = Schemas["Relay"];

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The operation for a method and a path; never if there is none. */
export type Operation<M extends Method, P extends keyof paths> = Extract<paths[P][M], { responses: unknown }>;

/** The paths that have an operation for this method. The console forwards only these. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: [Operation<M, P>] extends [never] ? never : P extends `/api/v1/${string}` ? P : never;
}[keyof paths];

export type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? Exclude<Q, undefined> : never;
export type ParamsOf<O> = O extends { parameters: { path: infer P } } ? P : never;
export type BodyOf<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;
export type ResultOf<O> = O extends { responses: { 200: { content: { "application/json": infer R } } } }
  ? R
  : undefined;
