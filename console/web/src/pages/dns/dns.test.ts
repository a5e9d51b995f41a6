import { describe, expect, test } from "vitest";
import type { DNS } from "@/api";
import { changeOf, clashing, differing, formOf, serverProblems } from "./form";

const dns = {
  magicDNS: true,
  nameservers: ["9.9.9.9", "1.1.1.1"],
  searchDomains: [],
  split: { "corp.example.com": ["10.1.0.53", "10.1.0.54"], "a.example.com": [] },
  extraRecords: [{ name: "grafana.example.com", type: "A", value: "100.64.0.7" }],
} as unknown as DNS;
const form = formOf(dns);

describe("settings of DNS", () => {
  test("are lines", () =>
    expect(form).toEqual({
      magicDNS: true,
      nameservers: "9.9.9.9\n1.1.1.1",
      searchDomains: "",
      split: "a.example.com\ncorp.example.com 10.1.0.53 10.1.0.54",
      extraRecords: "grafana.example.com A 100.64.0.7",
    }));

  test("are sent only where they changed", () => {
    expect(changeOf(form, form)).toEqual({ change: {}, problems: {} });
    expect(changeOf(form, { ...form, nameservers: " 9.9.9.9 \n\n1.1.1.1\n" }).change).toEqual({});
    expect(changeOf(form, { ...form, magicDNS: false, searchDomains: "x.example\n" }).change).toEqual({
      magicDNS: false,
      searchDomains: ["x.example"],
    });
  });

  test("take split domains and records back from their lines", () => {
    const { change, problems } = changeOf(form, {
      ...form,
      split: "b.example = 10.0.0.1, 10.0.0.2\nc.example",
      extraRecords: "\nx.example aaaa fd7a::1",
    });
    expect(problems).toEqual({});
    expect(change).toEqual({
      split: { "b.example": ["10.0.0.1", "10.0.0.2"], "c.example": [] },
      extraRecords: [{ name: "x.example", type: "AAAA", value: "fd7a::1" }],
    });
  });

  test("name the line that is nothing", () => {
    expect(changeOf(form, { ...form, extraRecords: "\nx.example MX 10" }).problems.extraRecords).toContain("Line 2");
    expect(changeOf(form, { ...form, split: "b 10.0.0.1\nb 10.0.0.2" }).problems.split).toContain("Line 2");
  });

  test("differ by what they say, not by how it is written", () => {
    expect(differing(form, { ...form, nameservers: "9.9.9.9\n\n1.1.1.1" })).toEqual([]);
    expect(differing(form, { ...form, split: "" })).toEqual(["split"]);
  });
});

test("two people clash where both changed the same in another way", () => {
  const mine = { ...form, nameservers: "8.8.8.8", magicDNS: false };
  expect(clashing(form, mine, { ...form, searchDomains: "x" })).toEqual([]);
  expect(clashing(form, mine, { ...form, nameservers: "8.8.8.8" })).toEqual([]);
  expect(clashing(form, mine, { ...form, nameservers: "1.1.1.1" })).toEqual(["nameservers"]);
});

test("what the server finds wrong stands at its line", () => {
  const { problems, rest } = serverProblems(
    [
      { path: "nameservers", message: 'nameservers[1]: "nonsense" must be an IP address' },
      { path: "extraRecords", message: 'extraRecords[0]: name "a b" must be a domain' },
      { path: "split", message: 'split: "x y" must be a domain' },
      { path: "other", message: "something else" },
    ],
    { ...form, nameservers: "9.9.9.9\n\nnonsense" },
  );
  expect(problems).toEqual({
    nameservers: 'Line 3: "nonsense" must be an IP address',
    extraRecords: 'Line 1: name "a b" must be a domain',
    split: 'split: "x y" must be a domain',
  });
  expect(rest).toEqual(["something else"]);
});
