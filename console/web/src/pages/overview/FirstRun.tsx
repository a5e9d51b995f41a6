import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Check, LoaderCircle } from "lucide-react";
import { type ReactNode, useState } from "react";
import { loginsQuery, preAuthKeysQuery, useCan, useNodes, useSession, useUsers } from "@/api";
import { CreateKeyDialog, keyState, onlyHere } from "@/keys";
import { printable, text } from "@/text";
import { overviewWords } from "@/text/overview";
import { Button, Command, linkButton, useNow, Warning, WriteButton } from "@/ui";
import { CreateUserDialog } from "@/users";

const t = overviewWords.first;

/** An empty network: three steps to the first node, each of which ticks itself off. */
export function FirstRun({ onLeave }: { onLeave(): void }) {
  const can = useCan();
  const now = useNow();
  const { coordinator } = useSession();
  const { data: nodes } = useNodes();
  const { data: users } = useUsers();
  const { data: keys } = useQuery({ ...preAuthKeysQuery, enabled: can("preauthkeys:read") });
  const { data: logins } = useQuery({ ...loginsQuery, enabled: can("logins:read"), refetchInterval: 3000 });
  const [dialog, setDialog] = useState<"user" | "key" | null>(null);
  const close = () => setDialog(null);

  const [joined] = nodes?.items ?? [];
  const names = users?.items.map((user) => printable(user.name, 40)) ?? [];
  const key = keys?.items.some((each) => keyState(each, now) === "usable");
  const login = (logins?.length ?? 0) > 0;
  const some =
    names.length > 2
      ? overviewWords.attention.and(names.slice(0, 2).join(", "), names.length - 2)
      : names.join(" and ");
  return (
    <div className="mx-auto max-w-[680px] pt-6">
      <h2 className="text-18 font-semibold">{t.title}</h2>
      <p className="mt-1 text-ink-2">{can("users:write") ? t.lead : t.readOnly}</p>
      <ol className="mt-6 rounded-lg border border-line bg-surface">
        <Step number={1} done={names.length > 0 || joined !== undefined} title={t.user.title}>
          <p>{names.length > 0 ? t.user.done(some) : t.user.body}</p>
          {names.length === 0 && !joined && (
            <WriteButton right="users:write" look="primary" className="mt-3" onClick={() => setDialog("user")}>
              {t.user.act}
            </WriteButton>
          )}
        </Step>
        <Step number={2} done={Boolean(key || login || joined)} title={t.key.title}>
          <p>{login ? t.key.doneLogin : key ? t.key.doneKey : t.key.body}</p>
          {login ? (
            <Link to="/requests" className={clsx(linkButton(names.length > 0 ? "primary" : "plain"), "mt-3")}>
              {t.key.review}
            </Link>
          ) : (
            !joined && (
              <WriteButton
                right="preauthkeys:write"
                look={key ? "plain" : names.length > 0 ? "primary" : "plain"}
                className="mt-3"
                onClick={() => setDialog("key")}
              >
                {t.key.act}
              </WriteButton>
            )
          )}
        </Step>
        <Step number={3} done={joined !== undefined} title={t.device.title}>
          <p className="mb-3">{t.device.body}</p>
          {onlyHere(coordinator.url) && <Warning className="mb-3">{text.device.onlyHere(coordinator.url)}</Warning>}
          <Command value={`sudo tailscale up --login-server=${coordinator.url}`} what={t.device.command} />
          <div aria-live="polite" className="mt-3 flex min-h-8 flex-wrap items-center gap-2">
            {joined ? (
              <>
                <p className="mr-auto">
                  <span className="font-medium text-ink">{printable(joined.givenName)}</span> {t.device.joined}
                </p>
                <Link to="/nodes/$id" params={{ id: joined.id }} className={linkButton()}>
                  {t.device.act}
                </Link>
                <Button look="primary" onClick={onLeave}>
                  {t.device.go}
                </Button>
              </>
            ) : (
              <>
                <LoaderCircle className="size-4 animate-spin text-ink-3" aria-hidden />
                <p className="mr-auto">{t.device.listening}</p>
                <Link to="/nodes/new" className={clsx(linkButton("ghost"), "-mx-3")}>
                  {t.device.other}
                </Link>
              </>
            )}
          </div>
        </Step>
      </ol>
      {dialog === "user" && <CreateUserDialog onClose={close} />}
      {dialog === "key" && <CreateKeyDialog onClose={close} user={users?.items[0]?.name} />}
    </div>
  );
}

function Step({
  number,
  done,
  title,
  children,
}: {
  number: number;
  done: boolean;
  title: string;
  children: ReactNode;
}) {
  return (
    <li className="flex gap-4 border-b border-line p-5 last:border-b-0 max-sm:p-4">
      <span
        className={clsx(
          "grid size-7 shrink-0 place-items-center rounded-full text-12 font-semibold tabular-nums",
          done ? "bg-ok-soft text-ok" : "bg-chip text-ink-2",
        )}
      >
        {done ? <Check className="size-4" role="img" aria-label={t.done} /> : number}
      </span>
      <div className="min-w-0 flex-1 pt-1">
        <h3 className="text-14 font-semibold">{title}</h3>
        <div className="mt-1 text-ink-2">{children}</div>
      </div>
    </li>
  );
}
