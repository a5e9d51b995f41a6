import { useState } from "react";
import { api, type Node, useNodes } from "@/api";
import { Failure } from "@/keys/NewKeyDialog";
import { printable, text } from "@/text";
import { addresses as t } from "@/text/ownership";
import { ApiCall, Button, Dialog, Field, Input, Warning } from "@/ui";
import { addressFamily, addressProblem } from "./addressCheck";
import { useSaveMember } from "./member";

/** The body of the call for these addresses; a family without an address is omitted. */
function bodyOf(list: readonly string[]): { ipv4?: string; ipv6?: string } {
  const ipv4 = list.find((each) => addressFamily(each) === "IPv4");
  const ipv6 = list.find((each) => addressFamily(each) === "IPv6");
  return { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) };
}

/** Sets the addresses of a node. */
export function AddressesDialog({ node, onClose }: { node: Node; onClose(): void }) {
  const { data: nodes } = useNodes();
  const [before] = useState(() => ({ ipv4: "", ipv6: "", ...bodyOf(node.ipAddresses) }));
  const [ipv4, setIPv4] = useState(before.ipv4);
  const [ipv6, setIPv6] = useState(before.ipv6);
  const name = printable(node.givenName);
  const wanted = [ipv4.trim(), ipv6.trim()].filter(Boolean);
  const changed = ipv4.trim() !== before.ipv4 || ipv6.trim() !== before.ipv6;
  const others = nodes?.items.filter((other) => other.id !== node.id) ?? [];
  const problems = {
    ipv4: addressProblem(ipv4.trim(), "IPv4", before.ipv4 !== "", others),
    ipv6: addressProblem(ipv6.trim(), "IPv6", before.ipv6 !== "", others),
  };
  const ready = changed && !problems.ipv4 && !problems.ipv6;
  const [error, setError] = useState<unknown>(null);
  const { submit, conflict } = useSaveMember({
    node,
    member: "ipAddresses",
    value: wanted,
    ready,
    call: (list, ifMatch) =>
      api.call("put", "/api/v1/node/{nodeId}/addresses", { params: { nodeId: node.id }, body: bodyOf(list), ifMatch }),
    textOf: (list) => list.join(" "),
    words: { done: () => t.done(name), undone: () => t.undone(name), failed: () => t.failed(name) },
    onClose,
    onFailed: setError,
  });
  return (
    <Dialog
      title={t.dialog(name)}
      onClose={onClose}
      onSubmit={() => {
        setError(null);
        submit();
      }}
      footer={
        <>
          <ApiCall method="put" path={`/api/v1/node/${node.id}/addresses`} body={bodyOf(wanted)} />
          <Button onClick={onClose}>{text.common.cancel}</Button>
          <Button type="submit" look="primary" disabled={!ready}>
            {t.submit}
          </Button>
        </>
      }
    >
      {conflict}
      <p>{t.body}</p>
      <Field label={t.ipv4} error={problems.ipv4}>
        {(control) => (
          <Input {...control} mono value={ipv4} onChange={(event) => setIPv4(event.target.value)} autoFocus />
        )}
      </Field>
      <Field label={t.ipv6} error={problems.ipv6}>
        {(control) => <Input {...control} mono value={ipv6} onChange={(event) => setIPv6(event.target.value)} />}
      </Field>
      {changed && <Warning>{t.breaks}</Warning>}
      {error !== null && <Failure what={t.failed(name)} error={error} />}
    </Dialog>
  );
}
