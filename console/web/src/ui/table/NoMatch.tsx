import { SearchX } from "lucide-react";
import { text } from "@/text";
import { Button } from "../button";
import { Empty } from "../states";

/** Shown when the filter matches no rows. */
export function NoMatch({ onClear }: { onClear(): void }) {
  return (
    <Empty
      icon={SearchX}
      title={text.table.noMatchTitle}
      action={<Button onClick={onClear}>{text.table.showWithoutFilter}</Button>}
    >
      {text.table.noMatchBody}
    </Empty>
  );
}
