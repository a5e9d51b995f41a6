import { useEffect, useId, useState } from "react";
import { useNodes } from "@/api";
import { accessMap } from "@/text/access";
import { Input } from "@/ui";

const most = 40;

/** A field for the name of a node. It calls onChange when the text is the name of a node. */
export function NodeChooser({ value, onChange }: { value: string; onChange(name: string): void }) {
  const id = useId();
  const { data } = useNodes();
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const names = (data?.items ?? []).map((node) => node.givenName);
  const choose = (next: string) => {
    setTyped(next);
    const exact = names.find((name) => name.toLowerCase() === next.trim().toLowerCase());
    if (exact) onChange(exact);
    else if (!next) onChange("");
  };
  return (
    <>
      <label htmlFor={id}>{accessMap.flow.node}</label>
      <Input
        id={id}
        className="max-w-44"
        list={`${id}-list`}
        placeholder={accessMap.flow.nodeHint}
        value={typed}
        onChange={(e) => choose(e.target.value)}
      />
      <datalist id={`${id}-list`}>
        {names
          .filter((name) => name.toLowerCase().includes(typed.trim().toLowerCase()))
          .slice(0, most)
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
    </>
  );
}
