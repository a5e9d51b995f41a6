// Holds each dashboard to shape.ts with the compiler of TypeScript.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const here = import.meta.dirname
const dashboards = join(here, '../../../../deploy/monitoring/grafana/dashboards')
const dir = mkdtempSync(join(here, 'check-'))
try {
  const files = readdirSync(dashboards).filter((name) => name.endsWith('.json'))
  for (const name of files) {
    const text = readFileSync(join(dashboards, name), 'utf8')
    writeFileSync(join(dir, name.replace('.json', '.ts')), `import type { Shape } from '../shape'\nexport const dashboard: Shape = ${text}`)
  }
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022']
  execFileSync(join(here, 'node_modules/.bin/tsc'), [...options, ...files.map((name) => join(dir, name.replace('.json', '.ts')))], { stdio: 'inherit' })
  console.log(`${files.length} dashboards have the shape that Grafana reads`)
} catch {
  process.exitCode = 1
} finally {
  rmSync(dir, { recursive: true })
}
