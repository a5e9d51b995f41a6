import type { ReactNode } from "react";

/** A line of a list of facts, which is a dl with two columns. */
export function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-2">{label}</dt>
      <dd className="min-w-0 max-md:mb-2">{children}</dd>
    </>
  );
}

/** The class of a cell in a ScrollingTable. */
export const tableCell = "border-t border-hair px-4 py-2 align-top";

/** A table that scrolls horizontally if its columns do not fit. */
export function ScrollingTable({
  label,
  titles,
  children,
}: {
  label: string;
  titles: readonly string[];
  children: ReactNode;
}) {
  return (
    <div
      className="overflow-x-auto"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
      tabIndex={0}
    >
      <table className="w-full text-13" aria-label={label}>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col" className="px-4 py-2 text-left text-12 font-medium text-ink-2">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
