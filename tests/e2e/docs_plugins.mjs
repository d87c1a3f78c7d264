// Runs the commands in the documents for authors of plugins, against an SDK that is installed into an
// empty prefix: the READMEs that `bulkhead plugin new` creates, docs/plugins.md and
// docs/plugin-rules.md.
import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { block, blocksOf } from './documents.mjs';
import { Home } from './home.mjs';
import { assert, build, root, run, show, test, until } from './lib.mjs';

process.umask(0o022); // a plugin that other users can modify is not loaded
const timeout = 400_000; // building takes time
const templates = readdirSync(join(root, 'sdk/template')).sort();

async function installed(t) {
  const home = new Home(t);
  const prefix = t.path('prefix');
  await home.sh(`cmake --install '${build}' --component sdk --prefix '${prefix}'`);
  return { home, prefix };
}
async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

// Runs all commands of a plugin's README in order, and returns their results by command. The command
// that fails as the README describes is `fails`. Commands that do not exit run until the end.
async function followed(t, { home, prefix }, readme, cwd, fails) {
  const results = new Map();
  const blocks = blocksOf(readme);
  // "In another terminal" follows `bulkhead serve`.
  for (const { commands } of blocks) {
    for (const command of commands) {
      const line = command.replaceAll('/usr/local', prefix);
      if (line.startsWith('bulkhead serve')) {
        // The profile of a transport plugin has no HTTP transport; 8808 may be in use.
        const listen = readFileSync(join(cwd, 'gateway.toml'), 'utf8').includes('[transports.') ? '' : ' --listen 127.0.0.1:0';
        results.set(command, await home.serve(line + listen, { cwd }));
        continue;
      }
      if (line.includes('plugin swap')) { // "after a change"
        const source = readdirSync(cwd).find((name) => /\.c(pp)?$/.test(name) && !/_test\./.test(name));
        appendFileSync(join(cwd, source), '\n__attribute__((used)) static const char changed[] = "changed";\n');
        await home.sh('cmake --build build', { cwd });
      }
      if (line.endsWith(' &')) {
        const running = home.start(line.slice(0, -2), { cwd, env: { PYTHONUNBUFFERED: '1' } });
        await until('it listens', async () => (await home.sh(`python3 -c "import socket; socket.create_connection(('127.0.0.1', ${/\d+$/.exec(line.slice(0, -2))[0]}), 2)"`, { code: null })).code === 0);
        results.set(command, running);
      } else if (line.startsWith('find ')) { // records are written after the response
        results.set(command, await until('a record is written', async () => {
          const done = await home.sh(line, { cwd });
          return done.stdout && done;
        }));
      } else results.set(command, await home.sh(line, { cwd, code: fails && line.includes(fails) ? 1 : 0 }));
    }
  }
  return results;
}

for (const template of templates) {
  const [kind, lang] = template.split('-');
  test(`the README of a plugin: ${kind} in ${lang}`, async (t) => {
    const all = await installed(t);
    const { home } = all;
    const id = `my-${kind}`;
    const cwd = t.path(id);
    await home.sh(`bulkhead plugin new ${kind} ${id} '${cwd}' --lang ${lang === 'c' ? 'c' : 'c++'}`);
    if (kind === 'connector') {
      const port = await freePort(); // 9000 may be in use
      for (const name of ['README.md', 'gateway.toml']) writeFileSync(join(cwd, name), readFileSync(join(cwd, name), 'utf8').replaceAll('9000', port));
    }
    const created = blocksOf(join(cwd, 'README.md'));
    const original = blocksOf(`sdk/template/${template}/README.md`);
    assert.deepEqual(created.map(({ commands }) => commands.length), original.map(({ commands }) => commands.length));
    const results = await followed(t, all, join(cwd, 'README.md'), cwd, kind === 'policy' ? 'dir_tree' : undefined);
    const result = (text) => [...results].find(([command]) => command.includes(text))?.[1];
    assert.match(result('ctest').stdout, /100% tests passed/);
    assert.match(result('plugin check').stdout, /: my-\w+ 1\.0\.0, \d+ rules checked, none violated$/m, show(result('plugin check')));
    if (kind === 'tools') {
      assert.match(result('bulkhead call').stdout, /hi/);
      assert.match(result('plugin swap').stdout, new RegExp(id));
    }
    if (kind === 'connector') assert.match(result('bulkhead call').stdout, /hi/);
    if (kind === 'policy') {
      assert.match(result('file_read').stdout, /policy plugin/);
      assert.match(result('dir_tree').stderr, /blocked/);
    }
    if (kind === 'telemetry') assert.match(result('records.ndjson').stdout, /file_read/);
    if (kind === 'transport') assert.match(result('client.py').stdout, /file_read/);
  }, { timeout });
}

test('plugins.md and plugin-rules.md: a plugin is created, built, checked and swapped', async (t) => {
  const { home, prefix } = await installed(t);
  const [create, enter, ...rest] = block('docs/plugins.md', 'bulkhead plugin new');
  const cwd = t.path('my-tools');
  await home.sh(create, { cwd: t.path('') });
  assert.equal(enter, 'cd my-tools');
  const serve = `${rest.pop()} --listen 127.0.0.1:0`;
  for (const command of rest) await home.sh(command.replace('/usr/local', prefix), { cwd });
  const gateway = await home.serve(serve, { cwd });
  const client = await t.http(gateway.url);
  assert.ok((await client.toolNames()).includes('my-tools__echo'));
  await client.close?.();

  // The other two plugins of plugin-rules.md.
  const rules = t.path('rules/build');
  mkdirSync(rules, { recursive: true });
  await home.sh(`cp '${cwd}'/build/my-tools.so '${cwd}'/build/my-tools.plugin.toml .`, { cwd: rules });
  for (const kind of ['policy', 'connector']) {
    const folder = t.path(`my-${kind}`);
    await home.sh(`bulkhead plugin new ${kind} my-${kind} '${folder}'`);
    await home.sh(`cmake -B build -DCMAKE_PREFIX_PATH='${prefix}' && cmake --build build --target my-${kind} && cp build/my-${kind}.so build/my-${kind}.plugin.toml '${rules}'`, { cwd: folder });
  }
  await home.sh(block('docs/plugin-rules.md', 'chmod go-w')[0], { cwd: join(rules, '..') });
  const [tools, policy, connector] = block('docs/plugin-rules.md', 'bulkhead plugin check');
  for (const command of [tools, policy]) {
    assert.match((await home.sh(command, { cwd: join(rules, '..') })).stdout, /: my-\w+ 1\.0\.0, \d+ rules checked, none violated$/m);
  }
  const report = await home.json(connector, { cwd: join(rules, '..') });
  assert.deepEqual([report.id, report.ok, report.complete], ['my-connector', true, true], show(report));
}, { timeout });

await run({ parallel: 2 });
