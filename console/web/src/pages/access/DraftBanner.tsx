import { Link } from "@tanstack/react-router";
import { type AccessRow, type Change, changeOf } from "@/access";
import { accessMap as t } from "@/text/access";
import { Banner, Button, linkButton } from "@/ui";

/** Says what the draft changes on the map, or that the map ignores it. */
export function DraftBanner({
  rows,
  hidden,
  broken,
  failed,
  answered,
  onToggle,
}: {
  rows: readonly AccessRow[];
  hidden: boolean;
  broken: Error | undefined;
  failed: boolean;
  answered: boolean;
  onToggle(): void;
}) {
  const count = (change: Change) => rows.filter((row) => changeOf(row.cell) === change).length;
  const [gained, lost, changed] = [count("gained"), count("lost"), count("changed")];
  if (broken)
    return (
      <Banner
        tone="warn"
        action={
          <Link to="/policy" className={linkButton()}>
            {t.openPolicy}
          </Link>
        }
      >
        {t.draft.broken}: {broken.message}
      </Banner>
    );
  const effect = () => {
    if (failed) return t.draft.unknown;
    if (!answered) return t.draft.coming;
    return gained + lost + changed === 0 ? t.draft.same : t.draft.on(gained, lost, changed);
  };
  return (
    <Banner action={<Button onClick={onToggle}>{hidden ? t.draft.show : t.draft.hide}</Button>}>
      {hidden ? t.draft.off : effect()}
    </Banner>
  );
}
