import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme";
import TabGroup from "./TabGroup";
import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component("TabGroup", TabGroup);
  },
} satisfies Theme;
