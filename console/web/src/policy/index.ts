/**
 * The parts of the policy editor that other pages need: the unsaved draft, and links to the editor. The editor itself
 * is a page.
 */
export {
  type Draft,
  discardDraft,
  readDraft,
  replaceDraft,
  type TestEntry,
  useDraft,
  useOpenInEditor,
  writeDraft,
} from "./draft";
