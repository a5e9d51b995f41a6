import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type AccessQuestion, api } from "@/api";

/** Who can reach whom. The stream invalidates it when a node, a user or the policy changes. */
export const accessQuery = (question: AccessQuestion) =>
  queryOptions({
    queryKey: ["access", question],
    queryFn: async ({ signal }) => (await api.call("post", "/api/v1/policy/access", { body: question, signal })).data,
    placeholderData: keepPreviousData,
    // A draft with a syntax error stays invalid until it is edited, so there is no retry.
    retry: question.policy === undefined ? undefined : false,
  });

export interface Asked {
  from: string;
  to: string;
  port: string;
  proto: string;
}

/** Whether one principal can reach another, and why; according to a draft if there is one. */
export const whyQuery = ({ from, to, port, proto }: Asked, policy: string | undefined) =>
  queryOptions({
    queryKey: ["access", "why", from, to, port, proto, policy],
    queryFn: async ({ signal }) => {
      const asked = { from, to, port: port || undefined, proto: proto || undefined };
      return policy === undefined
        ? api.get("/api/v1/policy/why", { query: asked, signal })
        : (await api.call("post", "/api/v1/policy/why", { body: { ...asked, policy }, signal })).data;
    },
    retry: false,
  });
