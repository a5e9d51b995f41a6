// @vitest-environment jsdom
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => {
  sessionStorage.clear();
  vi.resetModules();
  vi.restoreAllMocks();
});

const leaves = () => dispatchEvent(new Event("beforeunload", { cancelable: true }));

it("is there after a reload of the page, and leaving asks until it is gone", async () => {
  const first = await import("./draft");
  first.writeDraft({ base: "7", text: "{}" });
  vi.resetModules();
  const second = await import("./draft");
  expect(second.readDraft()).toEqual({ base: "7", text: "{}" });
  expect(leaves()).toBe(false);
  second.discardDraft();
  first.discardDraft();
  expect(leaves()).toBe(true);
  expect(sessionStorage.length).toBe(0);
});

it("is kept by the page where the browser has no room for it", async () => {
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  const { readDraft, writeDraft, discardDraft } = await import("./draft");
  writeDraft({ base: "7", text: "{}" });
  expect(readDraft()?.text).toBe("{}");
  discardDraft();
});

it("takes nothing from the store that is no draft", async () => {
  sessionStorage.setItem("policy-draft", '{"base": 7}');
  const { readDraft } = await import("./draft");
  expect(readDraft()).toBeNull();
});

it("goes back to what it was only while nobody has written on", async () => {
  const { readDraft, replaceDraft, writeDraft, discardDraft } = await import("./draft");
  writeDraft({ base: "7", text: "mine" });
  const back = replaceDraft(null);
  expect(back()).toBe(true);
  expect(readDraft()?.text).toBe("mine");
  const late = replaceDraft({ base: "7", text: "formatted" });
  writeDraft({ base: "7", text: "formatted, and more" });
  expect(late()).toBe(false);
  expect(readDraft()?.text).toBe("formatted, and more");
  discardDraft();
});
