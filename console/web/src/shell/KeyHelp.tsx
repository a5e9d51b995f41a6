import { text } from "@/text";
import { Banner, Dialog, Kbd, usePreferences } from "@/ui";
import { useAllShortcuts } from "@/ui/shortcuts";

/** All keyboard shortcuts that work now. */
export function KeyHelp({ onClose }: { onClose(): void }) {
  const all = useAllShortcuts();
  const { singleKeys } = usePreferences();
  const known = Object.values(text.shell.groups);
  const groups = [...new Set([...known, ...all.map((s) => s.group)])].filter((group) =>
    all.some((s) => s.group === group),
  );
  return (
    <Dialog title={text.shell.helpTitle} onClose={onClose} wide>
      {!singleKeys && <Banner>{text.shell.helpOff}</Banner>}
      <div className="gap-x-10 md:columns-2">
        {groups.map((group) => (
          <section key={group} className="mb-5 break-inside-avoid">
            <h3 className="pb-1 text-12 font-semibold text-ink">{group}</h3>
            <dl>
              {all
                .filter((s) => s.group === group)
                .map((s) => (
                  <div key={s.keys} className="flex h-7 items-center justify-between gap-4">
                    <dt>{s.label}</dt>
                    <dd className="flex gap-1">
                      {shown(s.keys).map((key) => (
                        <Kbd key={key}>{key}</Kbd>
                      ))}
                    </dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

/** The keys of a shortcut: "g n" is two keys, "X" is Shift and x, "Mod+K" is Ctrl and K. */
export function shown(keys: string): string[] {
  return keys.split(" ").flatMap((key) => {
    if (key.startsWith("Mod+")) return ["Ctrl", key.slice(4)];
    return /^[A-Z]$/.test(key) ? ["Shift", key.toLowerCase()] : [key];
  });
}
