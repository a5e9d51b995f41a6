import { Ban, Copy, RefreshCw, Trash2 } from "lucide-react";
import type { ApiKey } from "@/api";
import { apiKeys as t } from "@/text/settings";
import { copyAloud, MenuItem, MenuLine, RowMenu, useNow, useWrites } from "@/ui";
import { useApiKeyActions } from "./actions";
import { apiKeyName, apiKeyState } from "./facts";

export function KeyMenu({ of: key }: { of: ApiKey }) {
  const start = useApiKeyActions();
  const { offered, why } = useWrites("apikeys:write");
  const now = useNow();
  const name = apiKeyName(key.prefix);
  const usable = apiKeyState(key, now) === "usable";
  return (
    <RowMenu name={name}>
      <MenuItem icon={Copy} onSelect={() => void copyAloud(name)}>
        {t.actions.copy}
      </MenuItem>
      {offered && (
        <>
          <MenuLine />
          {usable ? (
            <>
              <MenuItem icon={RefreshCw} why={why} onSelect={() => start({ name: "rotate", key })}>
                {t.actions.rotate}
              </MenuItem>
              <MenuItem icon={Ban} danger why={why} onSelect={() => start({ name: "revoke", key })}>
                {t.actions.revoke}
              </MenuItem>
            </>
          ) : (
            <MenuItem icon={Trash2} danger why={why} onSelect={() => start({ name: "delete", keys: [key] })}>
              {t.actions.delete}
            </MenuItem>
          )}
        </>
      )}
    </RowMenu>
  );
}
