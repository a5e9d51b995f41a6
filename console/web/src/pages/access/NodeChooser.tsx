import { useEffect, useId, useState } from "react";
import { useNodes } from "@/api";
import { accessMap, accessView } from "@/text/access";
import { Combobox } from "@/ui/combobox";
import { askable, suggestions } from "./names";

/** A field for the name of a node. It calls onChange when the text is the name of a node. */
export function NodeChooser({ value, onChange }: { value: string; onChange(name: string): void }) {
  const id = useId();
  const { data } = useNodes();
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const nodes = data?.items ?? [];
  const choose = (next: string) => {
    setTyped(next);
    const exact = nodes.find((node) => node.givenName.toLowerCase() === next.trim().toLowerCase());
    if (exact) onChange(exact.givenName);
    else if (!next) onChange("");
  };
  return (
    <>
      <label htmlFor={id}>{accessMap.flow.node}</label>
      <Combobox
        id={id}
        className="w-44"
        placeholder={accessMap.flow.nodeHint}
        value={typed}
        onChange={choose}
        suggest={(text) => suggestions(text, askable([], nodes, []), ["node"])}
        listLabel={accessView.ask.options}
      />
    </>
  );
}
