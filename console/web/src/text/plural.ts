const rules = new Intl.PluralRules("en");
const numbers = new Intl.NumberFormat("en");

type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** A text for a count: `#` stands for the number, as in ICU messages. */
export function plural(forms: Forms): (count: number) => string {
  return (count) => (forms[rules.select(count)] ?? forms.other).replaceAll("#", numbers.format(count));
}

export const count = (n: number) => numbers.format(n);
