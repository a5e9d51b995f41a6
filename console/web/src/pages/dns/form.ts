import type { DNS } from "@/api";
import { dnsPage } from "@/text/settings";

/** The settings as they are edited: lists as lines. */
export interface DNSForm {
  magicDNS: boolean;
  nameservers: string;
  searchDomains: string;
  split: string;
  extraRecords: string;
}
export type DNSField = Exclude<keyof DNSForm, "magicDNS">;
export const dnsFields: readonly DNSField[] = ["nameservers", "searchDomains", "split", "extraRecords"];

/** What a change sends; unchanged fields are omitted. */
export type DNSChange = Partial<Pick<DNS, "magicDNS" | DNSField>>;
export type Problems = Partial<Record<DNSField | "magicDNS", string>>;

export function formOf(dns: DNS): DNSForm {
  return {
    magicDNS: dns.magicDNS,
    nameservers: dns.nameservers.join("\n"),
    searchDomains: dns.searchDomains.join("\n"),
    split: Object.entries(dns.split)
      .map(([domain, servers]) => [domain, ...servers].join(" "))
      .sort()
      .join("\n"),
    extraRecords: dns.extraRecords.map(({ name, type, value }) => `${name} ${type} ${value}`).join("\n"),
  };
}

const linesOf = (typed: string) => typed.split("\n").map((line) => line.trim());
const tidy = (typed: string) => linesOf(typed).filter(Boolean).join("\n");

/** The fields in which two forms differ. */
export const differing = (a: DNSForm, b: DNSForm): (keyof DNSForm)[] =>
  (Object.keys(a) as (keyof DNSForm)[]).filter((name) =>
    name === "magicDNS" ? a.magicDNS !== b.magicDNS : tidy(a[name]) !== tidy(b[name]),
  );

/** The fields that two people changed differently. */
export const clashing = (from: DNSForm, mine: DNSForm, theirs: DNSForm): (keyof DNSForm)[] => {
  const both = [differing(from, theirs), differing(mine, theirs)];
  return differing(from, mine).filter((name) => both.every((names) => names.includes(name)));
};

/** What has to be sent to get from one form to the other, and the invalid lines. */
export function changeOf(from: DNSForm, to: DNSForm): { change: DNSChange; problems: Problems } {
  const change: DNSChange = {};
  const problems: Problems = {};
  for (const name of differing(from, to)) {
    if (name === "magicDNS") change.magicDNS = to.magicDNS;
    else if (name === "split") change.split = splitOf(to.split, problems);
    else if (name === "extraRecords") change.extraRecords = recordsOf(to.extraRecords, problems);
    else change[name] = linesOf(to[name]).filter(Boolean);
  }
  return { change, problems };
}

function splitOf(typed: string, problems: Problems): DNS["split"] {
  const split: DNS["split"] = {};
  linesOf(typed).forEach((line, i) => {
    const [domain, ...servers] = line.split(/[\s,=]+/).filter(Boolean);
    if (domain === undefined) return;
    if (Object.hasOwn(split, domain)) problems.split ??= dnsPage.line(i + 1, dnsPage.bad.twice(domain));
    split[domain] = servers;
  });
  return split;
}

function recordsOf(typed: string, problems: Problems): DNS["extraRecords"] {
  const records: DNS["extraRecords"] = [];
  linesOf(typed).forEach((line, i) => {
    if (line === "") return;
    const [name = "", type, value, more] = line.split(/\s+/);
    if (type === undefined || value === undefined || more !== undefined || !/^a{1}$|^aaaa$/i.test(type))
      problems.extraRecords ??= dnsPage.line(i + 1, dnsPage.bad.record);
    else records.push({ name, type: type.toUpperCase(), value });
  });
  return records;
}

/** The problems that the server found, at the lines they refer to. */
export function serverProblems(
  errors: readonly { path: string; message: string }[],
  form: DNSForm,
): { problems: Problems; rest: string[] } {
  const problems: Problems = {};
  const rest: string[] = [];
  for (const { path, message } of errors) {
    const field = [...dnsFields, "magicDNS" as const].find((name) => path === name || path.startsWith(`${name}[`));
    if (!field) {
      rest.push(message);
      continue;
    }
    const [, index, why] = /^\w+\[(\d+)\](?:\.\w+)?:? (.*)$/s.exec(message) ?? [];
    problems[field] =
      index !== undefined && why !== undefined && field !== "magicDNS"
        ? dnsPage.line(lineOf(form[field], Number(index)), why)
        : message;
  }
  return { problems, rest };
}

/** The line of the nth entry; empty lines are not entries. */
function lineOf(typed: string, entry: number): number {
  let seen = -1;
  return linesOf(typed).findIndex((line) => line !== "" && ++seen === entry) + 1;
}
