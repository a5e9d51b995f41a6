import type { AccessRow } from "@/access";
import { ruleId } from "./flow";
import { CellPanel, RulePanel } from "./panels";
import type { Search, SetSearch } from "./search";

/** The details of the cell or rule in the URL. */
export function OpenPanel({
  search,
  setSearch,
  rows,
  draft,
  ask,
}: {
  search: Search;
  setSearch: SetSearch;
  rows: readonly AccessRow[];
  draft: string | undefined;
  ask(asked: { from: string; to: string }): void;
}) {
  if (search.cell) {
    const [from = "", to = ""] = search.cell.split(">");
    return (
      <CellPanel
        key={search.cell}
        from={from}
        to={to}
        row={rows.find((row) => row.id === search.cell)}
        draft={draft}
        onAsk={(a, b) => {
          setSearch({ cell: "" });
          ask({ from: a, to: b });
        }}
        onRule={(rule) => setSearch({ cell: "", rule: ruleId(rule) }, "push")}
        onClose={() => setSearch({ cell: "" })}
      />
    );
  }
  const rule = search.rule && rows.flatMap((row) => row.rules).find((use) => ruleId(use.rule) === search.rule)?.rule;
  if (!rule) return null;
  return <RulePanel key={search.rule} rule={rule} rows={rows} draft={draft} onClose={() => setSearch({ rule: "" })} />;
}
