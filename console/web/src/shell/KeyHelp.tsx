import { text } from "@/text";
import { Banner, Dialog, Kbd, usePreferences } from "@/ui";
import { useAllShortcuts } from "@/ui/shortcuts";

/** Every key that does something now. */
export function KeyHelp({ onClose }: { onClose(): void }) {
  const all = useAllShortcuts();
  const { singleKeys } = usePreferences();
  const groups = [...new Set(all.map((s) => s.group))];
  return (
    <Dialog title={text.shell.helpTitle} onClose={onClose} wide>
      {!singleKeys && <Banner>{text.shell.helpOff}</Banner>}
      <div className="grid gap-x-10 gap-y-5 md:grid-cols-2">
        {groups.map((group) => (
          <section key={group}>
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

/** "g n" is two keys, "X" is Shift and x, "Mod+K" is Ctrl and K. */
export function shown(keys: string): string[] {
  return keys.split(" ").flatMap((key) => {
    if (key.startsWith("Mod+")) return ["Ctrl", key.slice(4)];
    return /^[A-Z]$/.test(key) ? ["Shift", key.toLowerCase()] : [key];
  });
}
