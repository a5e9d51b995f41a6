import { text } from "@/text";

/** The maximum number of names in a dialog; it says how many more there are. */
export const mostListed = 8;

/** The names of the objects that a dialog is about. */
export function NameList({ names }: { names: readonly string[] }) {
  return (
    <ul className="rounded-md bg-chip px-3 py-2 font-mono text-12 text-ink">
      {names.slice(0, mostListed).map((name) => (
        <li key={name} className="truncate">
          {name}
        </li>
      ))}
      {names.length > mostListed && <li className="text-ink-2">{text.nodes.many.more(names.length - mostListed)}</li>}
    </ul>
  );
}
