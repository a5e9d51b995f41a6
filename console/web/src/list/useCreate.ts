import { Plus } from "lucide-react";
import { useActions } from "@/shell/actions";
import { text } from "@/text";
import { useShortcuts } from "@/ui";

interface Create {
  /** The ID of the action in the palette. */
  id: string;
  label: string;
  /** The title in the palette; the label by default. */
  title?: string;
  /** Other words that people search for. */
  words?: string[];
  run(): void;
}

/** Offers to create what a page lists, with the key c and in the palette, if the user has permission. */
export function useCreate(may: boolean, { id, label, title = label, words, run }: Create) {
  useShortcuts(may ? [{ keys: "c", label, group: text.shell.groups.page, run }] : []);
  useActions(may ? [{ id, title, icon: Plus, keys: "c", words, run }] : []);
}
