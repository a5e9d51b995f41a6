export interface Term {
  /** As typed. */
  text: string;
  negated: boolean;
  /** Lower case; null for plain text. */
  field: string | null;
  op: "=" | "<" | "<=" | ">" | ">=";
  /** Alternatives, lower case. */
  values: string[];
}

const words = /-?(?:[a-z]+:)?"[^"]*"?|\S+/gi;
const shape = /^(-?)(?:([a-z]+):)?(<=|>=|<|>)?(.*)$/i;

/** Parses a filter line. Terms with a field that is not in the list are plain text. */
export function parse(line: string, fields: readonly string[]): Term[] {
  const terms: Term[] = [];
  for (const [text] of line.matchAll(words)) {
    const [, minus = "", field, op, rest = ""] = shape.exec(text) ?? [];
    const known = field !== undefined && fields.includes(field.toLowerCase());
    if (known) {
      const values = unquote(rest).toLowerCase().split(",").filter(Boolean);
      // A field without a value is still being typed and is ignored for now.
      if (values.length > 0) {
        terms.push({ text, negated: minus !== "", field: field.toLowerCase(), op: (op as Term["op"]) ?? "=", values });
      }
      continue;
    }
    const plain = unquote(text.slice(minus.length)).toLowerCase();
    if (plain) terms.push({ text, negated: minus !== "", field: null, op: "=", values: [plain] });
  }
  return terms;
}

function unquote(text: string): string {
  return text.replace(/"/g, "");
}

/** The maximum number of values in a menu; others can be typed. */
const mostTerms = 30;

/**
 * Filter terms for the values of a field, without duplicates. Values that cannot be written as one term are omitted.
 */
export const termsOf = (field: string, values: Iterable<string>): string[] =>
  [...new Set(values)]
    .filter((value) => value !== "" && !/[",]/.test(value))
    .slice(0, mostTerms)
    .map((value) => `${field}:${/\s/.test(value) ? `"${value}"` : value}`);

export function hasTerm(line: string, term: string): boolean {
  return split(line).includes(term);
}

export function addTerm(line: string, term: string): string {
  return hasTerm(line, term) ? line : [...split(line), term].join(" ");
}

export function removeTerm(line: string, term: string): string {
  return split(line)
    .filter((word) => word !== term)
    .join(" ");
}

function split(line: string): string[] {
  return Array.from(line.matchAll(words), ([text]) => text);
}
