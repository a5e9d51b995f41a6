import { clsx } from "clsx";
import type { ReactNode } from "react";
import { useSession } from "@/api/session";
import { text } from "@/text";
import { CopyButton } from "./copy";
import { FoldButton, useFold } from "./fold";

interface Call {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** With its parameters filled in, from /api/ on. */
  path: string;
  body?: unknown;
  /** The ETag that the object must still have when it is changed. */
  ifMatch?: string;
}

/** Quotes a word for a POSIX shell. */
const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

/** The call as a curl command. It does not contain the API key, but refers to a variable instead. */
export function curlOf(server: string, { method, path, body, ifMatch }: Call): string {
  const words = ["curl", "--fail-with-body"];
  if (method !== "get") words.push("-X", method.toUpperCase());
  words.push("-H", '"Authorization: Bearer $API_KEY"');
  if (ifMatch !== undefined) words.push("-H", quoted(`If-Match: ${ifMatch}`));
  if (body !== undefined)
    words.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(body)));
  words.push(quoted(server + path));
  return words.join(" ");
}

/** A call with a title, for a place that has several. */
interface Step extends Call {
  title: string;
}

/**
 * The API call that a dialog is about to send, for people who would rather write a script. It goes first in a footer:
 * the toggle is to the left of the buttons, and its content above them.
 */
export const ApiCall = (call: Call) => (
  <Fold>
    <Detail {...call} />
  </Fold>
);

/** Like ApiCall, for several calls, as lines of one script. */
export function ApiScript({ calls }: { calls: readonly Call[] }) {
  const { coordinator } = useSession();
  const [only] = calls;
  return (
    <Fold>
      {calls.length === 1 && only ? (
        <Detail {...only} />
      ) : (
        <Line value={calls.map((call) => curlOf(coordinator.url, call)).join("\n")} what={text.common.curlLines} />
      )}
    </Fold>
  );
}

/** The calls behind the switches and buttons of a section. Place it in a row that wraps; it expands at the end. */
export const ApiSteps = ({ steps }: { steps: readonly Step[] }) => (
  <Fold below>
    {steps.map(({ title, ...call }) => (
      <div key={title} className="space-y-2 not-first:pt-2">
        <div className="font-sans font-medium text-ink">{title}</div>
        <Detail {...call} />
      </div>
    ))}
  </Fold>
);

function Fold({ below = false, children }: { below?: boolean; children: ReactNode }) {
  const fold = useFold();
  return (
    <>
      <FoldButton
        fold={fold}
        small
        className="mr-auto -ml-2 h-8 rounded-md px-2 text-12 hover:bg-sunken max-sm:basis-full"
      >
        {text.common.showAsCall}
      </FoldButton>
      {fold.open && (
        <div
          id={fold.id}
          className={clsx("basis-full space-y-2 pb-1 font-mono text-12", below ? "order-last pt-1" : "order-first")}
        >
          {children}
        </div>
      )}
    </>
  );
}

function Detail(call: Call) {
  const { coordinator } = useSession();
  return (
    <>
      <div className="break-all text-ink">
        <span className="font-semibold">{call.method.toUpperCase()}</span> {call.path}
      </div>
      {call.body !== undefined && (
        <pre
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
          tabIndex={0}
          className="max-h-40 overflow-auto rounded-md bg-chip px-2.5 py-1.5 text-ink"
        >
          {JSON.stringify(call.body, null, 2)}
        </pre>
      )}
      <Line value={curlOf(coordinator.url, call)} what={text.common.curlLine} />
    </>
  );
}

const Line = ({ value, what }: { value: string; what: string }) => (
  <div className="flex items-start gap-1 rounded-md bg-chip py-1.5 pr-1.5 pl-2.5">
    <code
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
      tabIndex={0}
      className="max-h-40 min-w-0 flex-1 overflow-y-auto py-0.5 break-all whitespace-pre-wrap text-ink"
    >
      {value}
    </code>
    <CopyButton value={value} what={what} />
  </div>
);
