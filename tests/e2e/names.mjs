// Tests that no metric, error code or other name that programs depend on is renamed. names.golden
// has one name a line. A new name is added to it in the same commit, and a metric also to the table
// in docs/control.md; a name in it is never changed. To print the new lines:
//
//   tests/e2e/run.sh tests/e2e/names.mjs --print
import { existsSync, mkdirSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { Skip, assert, fake, root, run, runProgram, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';
import { startCollector } from '../fixtures/collector.mjs';

const text = (file) => readFileSync(join(root, file), 'utf8');
const golden = text('tests/e2e/names.golden').split('\n').filter((line) => line && !line.startsWith('#'));
// Returns the golden names of a kind, without the kind.
const known = (kind) => golden.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));
const sorted = (names) => [...new Set(names)].sort();
const print = process.argv.includes('--print');
if (print) process.argv.length = 2;

// Compares names with the golden names of their kind.
function check(kind, names) {
  if (print) for (const name of sorted(names)) console.log(`${kind} ${name}`);
  else assert.deepEqual(sorted(names), sorted(known(kind)), `the names of the kind "${kind}" (tests/e2e/names.golden)`);
}
// The product's source files below these folders, as one text.
function sources(...folders) {
  const files = folders.flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)));
  return files.filter((file) => /\.(cpp|hpp|h)$/.test(file) && !/test/.test(file)).sort().map(text).join('\n');
}
const found = (from, pattern) => sorted([...from.matchAll(pattern)].map((match) => match[1]));

// Returns the metrics of a running gateway as "NAME TYPE".
async function metricsOf(gateway) {
  const { socket } = await statusOf(gateway);
  const body = await new Promise((done, failed) => {
    request({ socketPath: socket, path: '/metrics' }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done(data));
    }).on('error', failed).end();
  });
  return [...body.matchAll(/^# TYPE (\S+ \S+)$/gm)].map(([, name]) => name);
}

test('metrics of a running gateway', async (t) => {
  const collector = await startCollector();
  t.defer(() => collector.stop());
  const profile = {
    mcpServers: { local: fake('--tool', 'a'), other: fake('--tool', 'b') },
    telemetry: {
      records: { plugin: 'telemetry-sqlite' },
      otlp: { plugin: 'telemetry-otlp', url: collector.url, flush_ms: 20, metrics_ms: 100 },
    },
    security: { rules: { mcp: { no_b: { on: 'mcp.request', if: 'mcp.request.tool_name == "b"', decision: 'block' } } } },
  };
  const all = [];
  for (const args of [[], ['--single-process']]) {
    const transports = { http: { plugin: 'transport-http', listen: '127.0.0.1:0' }, guest: { plugin: 'transport-vsock', listen: `unix:${t.path(`guest${args.length}`)}` } };
    const gateway = await t.gateway({ ...profile, transports }, { args, listen: null });
    const client = await t.http(gateway);
    await client.tool('local__a', {});
    await assert.rejects(client.tool('other__b', {}), /no_b/);
    await assert.rejects(client.request('resources/read', '{"uri":"file:///none"}'));
    const names = await until('plugins have registered their counters', async () => {
      const list = await metricsOf(gateway);
      return ['records_written', 'spans', 'http_events_dropped', 'vsock_frames'].every((name) => list.includes(`bulkhead_plugin_${name}_total counter`)) && list;
    });
    assert.equal(names.includes('bulkhead_plugin_ignored_lines_total counter'), args.length === 1, 'as docs/control.md describes');
    all.push(...names);
  }
  check('metric', all);
  // Every counter that a source file registers is among them.
  const plugins = sources('plugins');
  const ofPlugins = [...found(plugins, /\b(?:counter|make)\("([a-z_.]+)"\)/g), ...found(plugins, /->counter\([^;]*?bh::str\("([a-z_.]+)"\)\)/g),
    ...found(text('plugins/telemetry-sqlite/plugin.cpp'), /\{"([a-z_]+)", &WriterCounters::/g)];
  const ofHost = found(text('core/embed/status.cpp'), /\{"([a-z_]+)", [a-z.]+\S*\}/g);
  const names = [...ofPlugins.map((name) => `plugin_${name.replaceAll('.', '_')}`), ...ofHost];
  assert.ok(ofPlugins.length > 30 && ofHost.length > 15, show(names));
  const listed = new Set(known('metric').map((line) => line.split(' ')[0]));
  if (!print) assert.deepEqual(names.filter((name) => !['', '_total'].some((end) => listed.has(`bulkhead_${name}${end}`))), []);

  const reported = () => collector.requests.filter(({ url }) => url === '/v1/metrics').flatMap(({ body }) => body.resourceMetrics[0].scopeMetrics[0].metrics);
  const metrics = await until('both metrics have arrived', () => reported().some(({ sum }) => sum) && reported().some(({ histogram }) => histogram) && reported());
  check('otlp.metric', metrics.map(({ name }) => name));
  // Some attributes occur only with some transports, so the complete list comes from the source.
  const exporter = sources('plugins/telemetry-otlp').replaceAll(/begin_metric\([^;]*;|"name", "[^"]*"/g, '');
  check('otlp.attribute', found(exporter, /"((?:bulkhead|mcp|gen_ai|error|service)\.[a-z_.]+)"/g));
  await until('spans have arrived', () => ['tools/call a', 'resources/read'].every((name) => collector.spans.some((span) => span.name === name)));
  const seen = sorted(collector.spans.flatMap((span) => [...Object.keys(span.attributes), ...Object.keys(span.service)]));
  assert.ok(seen.length > 12, show(seen));
  if (!print) assert.deepEqual(seen.filter((name) => !known('otlp.attribute').includes(name)), []);
});

test('the table of metrics in docs/control.md is complete', async () => {
  const rows = text('docs/control.md').split('\n').filter((line) => /^\| `bulkhead_/.test(line));
  const listed = rows.flatMap((line) => [...line.split('|')[1].matchAll(/`(bulkhead_[a-z_]+)/g)].map((match) => match[1]));
  assert.equal(new Set(listed).size, listed.length, 'each metric is in one row');
  assert.deepEqual(listed.sort(), known('metric').map((line) => line.split(' ')[0]).sort());
});

test('error codes of configuration errors, each printed by a real error', async (t) => {
  if (existsSync('/etc/bulkhead/corp.toml')) throw new Skip('this system has a corp profile');
  const wrong = {
    file_not_found: [], unreadable: [], too_large: [], invalid_json: ['a.json', '{'], invalid_toml: ['a.toml', 'x = '], invalid_schema: ['a.toml', '[limits]\nmessage_bytes = "x"\n'],
    unknown_key: ['a.toml', '[limit]\n'], missing_env_var: ['a.toml', '[transports.http]\nplugin = "transport-http"\ntoken = "${env:NO_SUCH}"\n'], locked: ['a.toml', '[limits]\nmessage_bytes = 67108864\n'],
    forbidden: ['a.toml', '[mcpServers.shell]\ncommand = "sh"\n'], plugin_unusable: ['a.toml', '[tools.x]\nplugin = "no-such-plugin"\n'], plugin_config: ['a.toml', '[tools.x]\nplugin = "builtin-files"\npath = 7\n'],
  };
  const corp = t.path('corp.toml');
  writeFileSync(corp, '[[directives]]\noperation = "lock"\npath = "limits"\n[[directives]]\noperation = "forbid"\npath = "mcpServers.shell"\n', { mode: 0o644 });
  const codes = [];
  for (const [code, [file, profile]] of Object.entries(wrong)) {
    const path = t.path(`${code}-${file ?? 'a.toml'}`);
    if (profile !== undefined) writeFileSync(path, profile);
    if (code === 'unreadable') mkdirSync(path);
    if (code === 'too_large') {
      writeFileSync(path, '');
      truncateSync(path, 64 << 20);
    }
    const env = ['locked', 'forbidden'].includes(code) ? { BULKHEAD_CORP_PROFILE: corp } : {};
    const done = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', path], { env });
    assert.equal(done.code, 1, show(done));
    const printed = found(done.stderr, /\[([a-z_]+)\]$/gm);
    assert.deepEqual(printed, [code], show(done));
    codes.push(...printed);
  }
  check('profile.error', codes);
  const comment = text('core/profile/profile.hpp').split('An error code for programs:')[1].split('std::string code;')[0];
  assert.deepEqual(found(comment, /"([a-z_]+)"/g), codes.sort(), 'core/profile/profile.hpp lists the codes');
});

test('codes and words of messages, records and reports', async () => {
  check('rpc.error', found(sources('core', 'host', 'plugins', 'sdk/include'), /(?<![\w.])(-32[0-9]{3})\b/g));
  const names = text('sdk/include/bulkhead/cpp/record_names.hpp');
  const returned = (name) => found(names.split(`${name}(`)[1].split('\n}')[0], /return "([a-z_]+)";/g);
  check('record.outcome', returned('outcome_name'));
  const recorder = sources('plugins/telemetry-sqlite');
  const marks = found(recorder, /\bmark\(\s*"([a-z]+)"/g);
  check('record.mark', marks);
  const documented = /^\| `audit_marks` \| each recording event: ([^.]*)\./m.exec(text('docs/telemetry.md'))[1];
  assert.deepEqual(found(documented, /`([a-z]+)`/g), marks, 'docs/telemetry.md lists the marks');
  const audit = text('core/mcp/description_audit.cpp');
  check('audit.finding', found(audit, /\{"([a-z-]+)",/g).concat(found(audit, /constexpr std::string_view k\w+ = "([a-z-]+)";/g)));
});

await run();
