import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { policyTrialQuery, useCan } from "@/api";

const TrialBar = lazy(() => import("./TrialBar"));

/**
 * The bar on every page while a policy version waits for confirmation. Otherwise it shows nothing and costs one small
 * request.
 */
export function PolicyTrial() {
  const { data } = useQuery({ ...policyTrialQuery, enabled: useCan()("policy:read") });
  if (!data?.confirmBy) return null;
  return (
    <Suspense>
      <TrialBar key={data.version} version={data.version} until={data.confirmBy} author={data.author} />
    </Suspense>
  );
}
