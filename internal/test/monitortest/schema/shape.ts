// What a dashboard's file must look like: Grafana's own types, with texts where
// they have enumerations. Panels are held to the options of their kind.
import type { Dashboard, FieldConfig, Panel, RowPanel } from '@grafana/schema'
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen'
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen'
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'

type Text<T> = T extends string ? `${T}` : T extends (infer U)[] ? Text<U>[] : T extends object ? { [K in keyof T]: Text<T[K]> } : T

type PanelOf<Kind extends string, Options, Custom = Record<string, never>> = Omit<Panel, 'type' | 'options' | 'fieldConfig'> & {
  type: Kind
  options: Partial<Options>
  fieldConfig: { defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Custom> }; overrides: [] }
}

type AnyPanel =
  | PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | PanelOf<'stat', stat.Options>
  | PanelOf<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | RowPanel

export type Shape = Text<Omit<Dashboard, 'panels'> & { panels: AnyPanel[] }>
