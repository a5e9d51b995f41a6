import { useQuery } from "@tanstack/react-query";
import { rowsOf, shortPorts } from "@/access/model";
import { accessQuery } from "@/access/query";
import type { AccessPrincipal, Node } from "@/api";
import { printable, text } from "@/text";
import { myWords } from "@/text/my";
import { Button, ColumnHead, Dialog, ErrorState, LoadingLines } from "@/ui";

const t = myWords.access;

/** What a device can reach, on which ports. */
export function DeviceAccess({ node, onClose }: { node: Node; onClose(): void }) {
  const blocked = node.needsApproval ? t.approval : node.expired ? t.expired : null;
  return (
    <Dialog
      wide
      title={t.title(printable(node.givenName))}
      onClose={onClose}
      footer={<Button onClick={onClose}>{text.common.close}</Button>}
    >
      {blocked ? <p>{blocked}</p> : <Destinations node={node} />}
    </Dialog>
  );
}

function Destinations({ node }: { node: Node }) {
  // Data of another device must not be shown meanwhile.
  const asked = { ...accessQuery({ from: [node.id], by: "nodes" }), placeholderData: undefined };
  const { data, error, refetch } = useQuery(asked);
  if (error && !data) return <ErrorState title={t.failed} error={error} onRetry={() => void refetch()} />;
  if (!data) return <LoadingLines widths={["w-64", "w-48"]} className="space-y-4" />;
  const rows = rowsOf(data).filter((row) => row.cell.ports.length > 0);
  if (rows.length === 0) return <p>{t.nothing}</p>;
  return (
    <>
      <table className="w-full table-fixed text-13">
        <caption className="sr-only">{t.title(printable(node.givenName))}</caption>
        <thead>
          <tr className="h-9 border-b border-line text-left text-12 text-ink-2">
            <ColumnHead>{t.to}</ColumnHead>
            <ColumnHead className="w-1/2">{t.ports}</ColumnHead>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} className="border-b border-hair last:border-0">
              <th scope="row" className="py-2 pr-2 text-left font-normal break-words text-ink">
                {nameOf(row.to)}
              </th>
              <td className="py-2 font-mono text-12 break-words">{shortPorts(row.cell.ports)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {data.moreCells > 0 && <p>{t.more(data.moreCells)}</p>}
    </>
  );
}

const nameOf = ({ kind, name }: AccessPrincipal) => (kind === "internet" ? t.internet : printable(name));
