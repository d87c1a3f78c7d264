// Measures snapshots of a large workspace in a complete gateway:
//   node bench/files_snapshots.mjs [FILES] [FOLDER]
// Defaults: 100000 files in the directory for temporary files.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gateway, HttpClient } from '../tests/e2e/lib.mjs';
import { statusOf } from '../tests/e2e/status.mjs';

const count = Number(process.argv[2] ?? 100_000);
const dir = mkdtempSync(join(process.argv[3] ?? tmpdir(), 'bulkhead-snapshots-'));
const work = join(dir, 'work');
const path = join(dir, 'kept');
const perFolder = 100;
const fileOf = (i) => join(work, String(Math.floor(i / perFolder)), `${i}.txt`);

mkdirSync(path, { recursive: true });
for (let i = 0; i < count; ++i) {
  if (i % perFolder === 0) mkdirSync(join(work, String(i / perFolder)), { recursive: true });
  writeFileSync(fileOf(i), `file ${i}\n${'x'.repeat(i % 2000)}\n`);
}
const change = (round) => {
  for (let i = 0; i < 20; ++i) writeFileSync(fileOf((i * 4999 + round) % count), `changed ${round}\n`);
};

const profile = {
  limits: { call_timeout_ms: 300_000 },
  tools: { files: { plugin: 'builtin-files', path: work, write: true, snapshots: { path, interval_s: 0 } } },
};
const gateway = new Gateway(dir, profile);
await gateway.serve();
const client = new HttpClient(gateway.url);
try {
  await client.initialize();
  const { pid } = (await statusOf(gateway)).compartments.find((one) => one.name === 'files');
  // Returns the processor time of the compartment, which does not depend on other load.
  const processor = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  };
  const timed = async (what, tool, args) => {
    const before = processor();
    const begin = performance.now();
    const result = await client.tool(`files__${tool}`, args);
    const ms = Math.round(performance.now() - begin);
    if (result.isError) throw new Error(result.content[0].text);
    const used = processor() - before;
    console.log(`${what.padEnd(44)} ${String(ms).padStart(7)} ms  ${String(used).padStart(7)} ms of processor time`);
    return result;
  };
  console.log(`${count} files, file system type 0x${statfsSync(work).type.toString(16)}, load ${loadavg()[0].toFixed(1)}`);
  await timed('create, the first one', 'snapshots_create', { name: 'first' });
  await timed('changes, none', 'snapshots_changes', { format: 'json' });
  change(1);
  await timed('changes, 20 files', 'snapshots_changes', { format: 'json' });
  await timed('create, 20 files changed', 'snapshots_create', { name: 'second' });
  change(2);
  await timed('create, 20 files changed', 'snapshots_create', { name: 'third' });
  await timed('changes, three snapshots', 'snapshots_changes', { format: 'json' });
  await timed('list, three snapshots', 'snapshots_list', { format: 'json' });
  await timed('history of one file', 'snapshots_history', { path: '0/0.txt' });
  await timed('revert of everything (20 files)', 'snapshots_revert', { path: '.', checkpoint: 'cp-11' });
  await timed('compact of three', 'snapshots_compact', { checkpoints: ['cp-10', 'cp-11', 'cp-12'] });
} finally {
  await client.close();
  await gateway.stop();
  rmSync(dir, { recursive: true, force: true });
}
