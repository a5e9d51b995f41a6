import { clsx } from "clsx";
import type { ReactNode } from "react";

/** The title of a column in a small table. */
export const ColumnHead = ({ className, children }: { className?: string; children: ReactNode }) => (
  <th scope="col" className={clsx("font-medium", className)}>
    {children}
  </th>
);
