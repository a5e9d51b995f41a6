/**
 * The components that pages are made of. They implement the design and know nothing about nodes or users; components
 * that write know the session and the connection (write). Before adding a component, check that two pages need it.
 */
export { ApiCall, ApiScript, ApiSteps } from "./ApiCall";
export { announce, LiveRegions } from "./announce";
export { Avatar, Badge, Chips, Kbd, Mark, type Tone } from "./badge";
export { Button, type ButtonProps, IconButton, linkButton } from "./button";
export { Choices } from "./choices";
export { Command } from "./command";
export { CopyButton, copyAloud, copyText } from "./copy";
export { Confirm, Dialog, SidePanel } from "./dialog";
export { download } from "./download";
export { Checkbox, Field, Input, Select, Switch, TextArea } from "./field";
export { Flash } from "./flash";
export { Fold, FoldButton, useFold } from "./fold";
export { AskToDrop, SecretGuard, UnsavedGuard } from "./leave";
export { Menu, MenuCheck, MenuGroup, MenuItem, MenuLine, MenuRadio, RowMenu } from "./menu";
export { BackLink, Page, PageBody, PageHead, pageWidth, usePageTitle } from "./page";
export { type Preferences, setPreference, usePreferences } from "./preferences";
export { SecretReveal } from "./secret";
export { Section } from "./section";
export { type Shortcut, useShortcuts } from "./shortcuts";
export { Banner, Delayed, Empty, ErrorState, LoadingLines, NotAllowed, Skeleton, Warning } from "./states";
export { StatusLine, useStatus } from "./status";
export * from "./table";
export { type Tab, Tabs } from "./tabs";
export { absolute, clock, relative, Time, useNow } from "./time";
export { Tip } from "./tip";
export { useMedia } from "./useMedia";
export { useWrites, WriteButton } from "./write";
