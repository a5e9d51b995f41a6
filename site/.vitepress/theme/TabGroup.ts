import { computed, defineComponent, h, onBeforeUnmount, onMounted, ref, useId } from "vue";
import { choices, choose, restore } from "./choices";

/** TabGroup shows one of its slots tab0, tab1, … at a time, as the pattern for tabs of WAI-ARIA says. */
export default defineComponent({
  props: { titles: { type: Array<string>, required: true } },
  setup(props, { slots }) {
    const id = useId();
    const group = ref<HTMLElement>();
    const all = (role: string) => [...(group.value?.querySelectorAll<HTMLElement>(`[role=${role}]`) ?? [])];
    const current = computed(() => {
      const chosen = choices.value.find((c) => props.titles.includes(c));
      return chosen === undefined ? 0 : props.titles.indexOf(chosen);
    });

    function onKeydown(event: KeyboardEvent): void {
      const last = props.titles.length - 1;
      const steps: Record<string, number> = {
        ArrowRight: current.value + 1,
        ArrowLeft: current.value - 1,
        Home: 0,
        End: last,
      };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = step < 0 ? last : step > last ? 0 : step;
      choose(props.titles[next] ?? "");
      all("tab")[next]?.focus();
    }

    /** reveal shows the tab that contains the heading to which the address leads. */
    function reveal(): void {
      const heading = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      const title = props.titles[all("tabpanel").findIndex((p) => heading && p.contains(heading))];
      if (title === undefined) return;
      choose(title);
      requestAnimationFrame(() => heading?.scrollIntoView());
    }

    onMounted(() => {
      restore();
      reveal();
      addEventListener("hashchange", reveal);
    });
    onBeforeUnmount(() => removeEventListener("hashchange", reveal));

    const tab = (title: string, i: number) =>
      h(
        "button",
        {
          id: `${id}-tab-${i}`,
          type: "button",
          role: "tab",
          "aria-selected": i === current.value,
          "aria-controls": `${id}-panel-${i}`,
          tabindex: i === current.value ? 0 : -1,
          onClick: () => choose(title),
        },
        title,
      );
    const panel = (title: string, i: number) =>
      h(
        "div",
        {
          id: `${id}-panel-${i}`,
          role: "tabpanel",
          "aria-labelledby": `${id}-tab-${i}`,
          class: { current: i === current.value },
        },
        [h("p", { class: "caption" }, h("strong", title)), slots[`tab${i}`]?.()],
      );
    return () =>
      h("div", { ref: group, class: "tabs" }, [
        h("div", { role: "tablist", onKeydown }, props.titles.map(tab)),
        ...props.titles.map(panel),
      ]);
  },
});
