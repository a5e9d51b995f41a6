import { useConnection } from "@/api";
import { text } from "@/text";
import { Banner, clock, usePreferences } from "@/ui";

export const SkipLink = () => (
  <a
    href="#main"
    className="sr-only focus:not-sr-only focus:absolute focus:top-2 focus:left-2 focus:z-50 focus:rounded-md focus:bg-raised focus:px-3 focus:py-2 focus:shadow-menu"
  >
    {text.shell.skip}
  </a>
);

export function OfflineBanner() {
  const connection = useConnection();
  const { timeZone } = usePreferences();
  if (connection.name !== "offline") return null;
  return (
    <div role="alert">
      <Banner tone="warn">{text.shell.offlineBanner(clock(connection.since, timeZone))}</Banner>
    </div>
  );
}
