// Compares builtin-files (confined, in a gateway over stdio) with
// @modelcontextprotocol/server-filesystem on the same files in one run: tools, latency, memory, and
// behaviour in a malicious workspace.
//   node bench/files_side_by_side.mjs [CALLS]     (default: 200 for each measurement)
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gateway, StdioClient, descendants, npmServer, sleep } from '../tests/e2e/lib.mjs';

const calls = Number(process.argv[2] ?? 200);
const dir = mkdtempSync(join(tmpdir(), 'bulkhead-side-'));
const work = join(dir, 'work');
const outside = join(dir, 'outside');
const callBound = 5000;  // milliseconds; a slower call counts as a hang

function fill() {
  rmSync(work, { recursive: true, force: true });
  rmSync(outside, { recursive: true, force: true });
  for (const path of [work, outside]) mkdirSync(path);
  writeFileSync(join(outside, 'secret'), 'outside');
  for (let d = 0; d < 20; ++d) {
    mkdirSync(join(work, `d${d}`));
    for (let f = 0; f < 100; ++f) writeFileSync(join(work, `d${d}`, `f${f}.txt`), `file ${d} ${f}\n${'x'.repeat(1000)}\n`);
  }
  writeFileSync(join(work, 'mega.txt'), 'line of text\n'.repeat(75_000));
  symlinkSync('/etc/passwd', join(work, 'passwd'));
  execFileSync('mkfifo', [join(work, 'fifo')]);
  writeFileSync(join(work, 'huge'), '');
  truncateSync(join(work, 'huge'), 2 ** 40);
  writeFileSync(Buffer.concat([Buffer.from(`${work}/odd`), Buffer.from([0xff, 0xfe])]), 'odd');
  writeFileSync(join(work, 'n'.repeat(255)), 'long');
}

// ---- servers ---------------------------------------------------------------------------------

function bulkhead() {
  const home = join(dir, 'home');
  mkdirSync(home, { recursive: true });
  const gateway = new Gateway(home, { tools: { files: { plugin: 'builtin-files', path: work, write: true } } });
  const name = (tool) => `files__${tool}`;
  return {
    client: new StdioClient(...gateway.stdioCommand()),
    read: (path) => [name('file_read'), { path, limit: 100_000 }],
    write: (path, content) => [name('file_write'), { path, content }],
    edit: (path, from, to) => [name('file_edit'), { path, old_text: from, new_text: to }],
    list: (path) => [name('dir_list'), { path }],
    search: (glob) => [name('file_search'), { glob: `**/${glob}`, max_matches: 1000 }],
  };
}
function serverFilesystem() {
  const { command, args } = npmServer('@modelcontextprotocol/server-filesystem/dist/index.js', work);
  const at = (path) => (path === '.' ? work : join(work, path));
  return {
    client: new StdioClient(command, args),
    read: (path) => ['read_text_file', { path: at(path) }],
    write: (path, content) => ['write_file', { path: at(path), content }],
    edit: (path, from, to) => ['edit_file', { path: at(path), edits: [{ oldText: from, newText: to }] }],
    list: (path) => ['list_directory_with_sizes', { path: at(path) }],
    search: (pattern) => ['search_files', { path: work, pattern: `**/${pattern}` }],
  };
}
const peers = { bulkhead, 'server-filesystem': serverFilesystem };

// ---- measurements ----------------------------------------------------------------------------

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function latency(peer, make, n = calls) {
  const times = [];
  for (let i = 0; i < n; ++i) {
    const [tool, args] = make(i);
    const begin = performance.now();
    const result = await peer.client.tool(tool, args);
    times.push(performance.now() - begin);
    if (result.isError) throw new Error(`${tool}: ${result.content[0].text}`);
  }
  return median(times);
}

function memory(pid) {
  let kib = 0;
  for (const one of [pid, ...descendants(pid)]) {
    try {
      kib += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${one}/smaps_rollup`, 'utf8'))[1]);
    } catch {
      // the process has exited
    }
  }
  return kib / 1024;
}

async function figures(peer) {
  const small = (i) => `d${i % 20}/f${i % 100}.txt`;
  return {
    'read 1 KB (ms)': await latency(peer, (i) => peer.read(small(i))),
    'read 975 KB (ms)': await latency(peer, () => peer.read('mega.txt'), Math.min(calls, 30)),
    'write 1 KB (ms)': await latency(peer, (i) => peer.write(small(i), `written ${i}\n${'y'.repeat(1000)}`)),
    'edit 1 KB (ms)': await latency(peer, (i) => peer.edit('d0/f0.txt', i === 0 ? 'written' : `word${i - 1}`, `word${i}`)),
    'list 100 entries (ms)': await latency(peer, (i) => peer.list(`d${i % 20}`)),
    'find 20 of 2,000 files (ms)': await latency(peer, () => peer.search('f7.txt'), Math.min(calls, 30)),
    'memory at rest after that (MiB)': memory(peer.client.child.pid),
  };
}

// ---- a malicious workspace -------------------------------------------------------------------

const bounded = (promise) =>
  Promise.race([promise, sleep(callBound).then(() => 'hangs')]).catch((error) => error);

function shown(result) {
  if (typeof result === 'string') return result;
  if (result instanceof Error) return `error: ${result.message.slice(0, 60)}`;
  const text = (result.content[0]?.text ?? '').split('\n')[0].replaceAll(dir, '').slice(0, 60);
  return `${result.isError ? 'refused' : 'answered'}: ${text}`;
}

async function hostile(start) {
  const cases = {
    'link to /etc/passwd, read': (p) => p.read('passwd'),
    'FIFO, read': (p) => p.read('fifo'),
    'sparse file of 1 TB, read': (p) => p.read('huge'),
    'name of 255 bytes, read': (p) => p.read('n'.repeat(255)),
    'name that is no UTF-8, list': (p) => p.list('.'),
    'FIFO, write': (p) => p.write('fifo', 'x'),
  };
  const out = {};
  for (const [what, make] of Object.entries(cases)) {
    const peer = start();
    await peer.client.initialize();
    out[what] = shown(await bounded(peer.client.tool(...make(peer))));
    const alive = await bounded(peer.client.tool(...peer.read('d1/f1.txt')));
    if (alive === 'hangs' || alive instanceof Error) out[what] += ' (and no longer answers)';
    await bounded(peer.client.close());
    peer.client.child.kill('SIGKILL');
  }
  return { ...out, ...(await races(start)) };
}

// Repeatedly replaces a directory with a link to a directory outside the workspace and restores it,
// while its files are read and written.
async function races(start) {
  const peer = start();
  await peer.client.initialize();
  mkdirSync(join(work, 'race'), { recursive: true });
  writeFileSync(join(work, 'race/secret'), 'inside');
  let on = true;
  const turning = (async () => {
    while (on) {
      renameSync(join(work, 'race'), join(work, 'race-real'));
      try {
        symlinkSync(outside, join(work, 'race'));
      } catch {
        // a write has recreated the directory
      }
      await new Promise(setImmediate);
      // A write may have recreated the directory in the meantime.
      rmSync(join(work, 'race'), { recursive: true, force: true, maxRetries: 50, retryDelay: 1 });
      try {
        renameSync(join(work, 'race-real'), join(work, 'race'));
      } catch {
        rmSync(join(work, 'race'), { recursive: true, force: true, maxRetries: 50, retryDelay: 1 });
        renameSync(join(work, 'race-real'), join(work, 'race'));
      }
      await new Promise(setImmediate);
    }
  })();
  let leaks = 0;
  for (let i = 0; i < 300; ++i) {
    const read = await bounded(peer.client.tool(...peer.read('race/secret')));
    if (read?.content?.[0]?.text?.startsWith('outside')) ++leaks;
    await bounded(peer.client.tool(...peer.write(`race/new${i % 10}`, 'x')));
  }
  on = false;
  await turning;
  const written = readdirSync(outside).length - 1;
  await bounded(peer.client.close());
  peer.client.child.kill('SIGKILL');
  return { 'links in a race, 300 reads and writes': `${leaks} reads and ${written} files outside` };
}

// ---- main ------------------------------------------------------------------------------------

const table = {};
const put = (peer, values) => {
  for (const [what, value] of Object.entries(values)) (table[what] ??= {})[peer] = typeof value === 'number' ? value.toFixed(2) : value;
};
try {
  for (const [name, start] of Object.entries(peers)) {
    fill();
    const peer = start();
    await peer.client.initialize();
    const tools = await peer.client.tools();
    put(name, {
      tools: String(tools.length),
      'of these with an output schema': String(tools.filter((tool) => tool.outputSchema).length),
      'memory at the start (MiB)': memory(peer.client.child.pid),
    });
    put(name, await figures(peer));
    await bounded(peer.client.close());
    put(name, await hostile(start));
  }
  console.log(`load ${loadavg()[0].toFixed(1)}, ${calls} calls for each figure, medians`);
  for (const [what, values] of Object.entries(table)) {
    console.log(`| ${what} | ${values.bulkhead} | ${values['server-filesystem']} |`);
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
process.exit(0);
