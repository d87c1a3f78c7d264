// Tests builtin-files in a complete gateway, where it runs in its compartment, confined, as the
// owner of the directories.
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { Skip, assert, run, sanitized, test, until } from './lib.mjs';
import { Records } from './records.mjs';
import { statusOf } from './status.mjs';

const files = (config) => ({ tools: { files: { plugin: 'builtin-files', ...config } } });

function folder(t, name) {
  const path = t.path(name);
  mkdirSync(path);
  return path;
}

async function connected(t, config, options) {
  const client = await t.http(await t.gateway(files(config), options));
  return (tool, args) => client.tool(`files__${tool}`, args);
}

const text = (result) => {
  assert.ok(!result.isError, JSON.stringify(result));
  return result.content[0].text;
};
const refusal = (result) => {
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.content[0].text;
};

test('the compartment can write only to configured directories', async (t) => {
  const open = folder(t, 'open');
  const kept = folder(t, 'kept');
  writeFileSync(`${kept}/k.txt`, 'kept');
  const gateway = await t.gateway(files({ workspaces: [{ name: 'open', path: open, write: true }, { name: 'kept', path: kept }] }));
  const client = await t.http(gateway);
  const call = (tool, args) => client.tool(`files__${tool}`, args);
  assert.match(text(await call('file_write', { path: 'a/b/n.txt', content: 'one\ntwo\n' })), /Created a\/b\/n.txt \(8 bytes\)/);
  chmodSync(`${open}/a/b/n.txt`, 0o750);
  const edit = { path: 'a/b/n.txt', old_text: 'two', new_text: 'zwei' };
  assert.match(text(await call('file_edit', { ...edit, dry_run: true })), /\n-two\n\+zwei\n/);
  assert.equal(readFileSync(`${open}/a/b/n.txt`, 'utf8'), 'one\ntwo\n');
  text(await call('file_edit', edit));
  assert.equal(readFileSync(`${open}/a/b/n.txt`, 'utf8'), 'one\nzwei\n');
  assert.equal(statSync(`${open}/a/b/n.txt`).mode & 0o777, 0o750);
  text(await call('file_move', { from: 'a/b/n.txt', to: 'c/m.txt' }));
  assert.match(text(await call('dir_tree', { depth: 9 })), /c\/\n {2}m.txt/);
  text(await call('file_delete', { path: 'a', recursive: true }));
  assert.deepEqual(readdirSync(open), ['c']);
  assert.deepEqual(readdirSync(`${open}/c`), ['m.txt']);
  assert.match(refusal(await call('file_write', { path: 'k.txt', content: 'x', workspace: 'kept' })), /must be one of: open/);
  assert.equal(readFileSync(`${kept}/k.txt`, 'utf8'), 'kept');
  const compartment = (await statusOf(gateway)).compartments.find((one) => one.name === 'files');
  if (!sanitized) assert.match(JSON.stringify(compartment), /seccomp/);
});

test('D09 nothing outside the directory is read or written', async (t) => {
  const work = folder(t, 'work');
  writeFileSync(`${work}/in.txt`, 'inside');
  writeFileSync(t.path('outside.txt'), 'outside');
  symlinkSync('/etc/passwd', `${work}/passwd`);
  symlinkSync('../outside.txt', `${work}/near`);
  symlinkSync('..', `${work}/up`);
  for (const args of [[], ['--single-process']]) {
    const call = await connected(t, { path: work, write: true }, { args });
    assert.equal(text(await call('file_read', { path: 'in.txt' })), 'inside');
    assert.match(text(await call('dir_list', {})), /in.txt/);
    for (const path of ['passwd', 'near', 'up/outside.txt', '../outside.txt', '/etc/passwd', 'up/../up/outside.txt']) {
      refusal(await call('file_read', { path }));
      refusal(await call('file_write', { path, content: 'x' }));
      refusal(await call('file_edit', { path, old_text: 'o', new_text: 'x' }));
      refusal(await call('file_move', { from: 'in.txt', to: path, ...(path === 'passwd' || path === 'near' ? {} : { overwrite: true }) }));
    }
    assert.equal(readFileSync(t.path('outside.txt'), 'utf8'), 'outside');
    assert.equal(readFileSync(`${work}/in.txt`, 'utf8'), 'inside');
  }
});

test('written files belong to the owner of the directory', async (t) => {
  if (process.getuid() !== 0) throw new Skip('only root can become another user');
  const uid = 60998;
  const above = mkdtempSync('/tmp/bulkhead-owner-');
  t.defer(() => rmSync(above, { recursive: true }));
  chmodSync(above, 0o755);
  mkdirSync(`${above}/w`, { mode: 0o700 });
  chownSync(`${above}/w`, uid, uid);
  const call = await connected(t, { path: `${above}/w`, write: true });
  text(await call('file_write', { path: 'd/a.txt', content: 'x' }));
  for (const path of ['d', 'd/a.txt']) assert.equal(lstatSync(`${above}/w/${path}`).uid, uid);
  // Files of other users in the directory are not changed.
  writeFileSync(`${above}/w/root.txt`, 'mine', { mode: 0o600 });
  refusal(await call('file_read', { path: 'root.txt' }));
  refusal(await call('file_edit', { path: 'root.txt', old_text: 'mine', new_text: 'x' }));
  assert.ok(existsSync(`${above}/w/root.txt`));
});

test('changes by tools are recorded', async (t) => {
  const work = folder(t, 'work');
  const profile = { ...files({ path: work, write: true }), telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } } };
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  await client.tool('files__file_write', { path: 'a.txt', content: 'abc' });
  await client.tool('files__file_edit', { path: 'a.txt', old_text: 'b', new_text: '' });
  await client.tool('files__file_delete', { path: 'a.txt' });
  const records = new Records(gateway);
  await records.until('SELECT count(*) FROM fs_events', (n) => n === 3);
  assert.deepEqual(await records.rows('SELECT action, path, size FROM fs_events ORDER BY id'), [['created', 'a.txt', 3], ['modified', 'a.txt', 2], ['deleted', 'a.txt', 2]]);
});

test('files are available as resources of a template', async (t) => {
  const work = folder(t, 'work');
  mkdirSync(`${work}/d`);
  writeFileSync(`${work}/d/a b.txt`, 'hello');
  writeFileSync(t.path('outside.txt'), 'outside');
  const client = await t.http(await t.gateway(files({ path: work })));
  const { resourceTemplates } = await client.call('resources/templates/list', {});
  assert.equal(resourceTemplates.length, 1);
  const uri = (path) => resourceTemplates[0].uriTemplate.replace('{+path}', path);
  const { contents } = await client.call('resources/read', { uri: uri('d/a%20b.txt') });
  assert.equal(contents[0].text, 'hello');
  for (const path of ['none', '../outside.txt', '%2e%2e/outside.txt']) {
    await assert.rejects(client.call('resources/read', { uri: uri(path) }), /-32002|there is no|not allowed/);
  }
});

// ---- snapshots -------------------------------------------------------------------------------

// Creates a workspace whose snapshots are in a directory next to it.
async function kept(t, snapshots = {}, options = {}, name = '') {
  const work = folder(t, `work${name}`);
  const path = folder(t, `kept${name}`);
  const gateway = await t.gateway(files({ path: work, write: true, snapshots: { path, interval_s: 0, ...snapshots } }), options);
  const client = await t.http(gateway);
  const call = (tool, args) => client.tool(`files__${tool}`, args);
  const json = async (tool, args = {}) => JSON.parse(text(await call(tool, args)));
  return { work, path, gateway, client, call, json };
}
const ops = (changes) => changes.map((c) => `${c.op} ${c.path}`).sort();

test('D10 D11 D12 D13 D14 snapshots are created, compared, reverted and compacted in the compartment', async (t) => {
  const { work, call, json } = await kept(t);
  for (const name of ['edited', 'gone', 'same']) writeFileSync(`${work}/${name}`, '12345');
  chmodSync(`${work}/edited`, 0o751);
  symlinkSync('same', `${work}/link`);
  assert.equal((await json('snapshots_create', { name: 'one' })).checkpoint, 'cp-10');
  writeFileSync(`${work}/edited`, '54321');
  rmSync(`${work}/gone`);
  rmSync(`${work}/link`);
  writeFileSync(`${work}/new`, 'n');
  const changes = await json('snapshots_changes', { format: 'json' });
  assert.ok(Array.isArray(changes));
  assert.deepEqual(ops(changes), ['created new', 'deleted gone', 'deleted link', 'modified edited']);
  chmodSync(`${work}/edited`, 0o600);
  for (const path of ['edited', 'gone', 'link']) {
    assert.deepEqual((await json('snapshots_revert', { path })).action, 'restored', path);
  }
  assert.equal((await json('snapshots_revert', { path: 'new', checkpoint: 'cp-10' })).action, 'deleted');
  assert.match(refusal(await call('snapshots_revert', { path: 'edited' })), /already current/);
  assert.equal(readFileSync(`${work}/edited`, 'utf8'), '12345');
  assert.equal(statSync(`${work}/edited`).mode & 0o777, 0o751);
  assert.deepEqual(await json('snapshots_changes', { format: 'json' }), []);
  for (let i = 11; i < 22; ++i) {
    writeFileSync(`${work}/same`, `version ${i}`);
    assert.equal((await json('snapshots_create', { name: `n${i}` })).checkpoint, `cp-${i}`);
  }
  assert.match(refusal(await call('snapshots_create', { name: 'more' })), /all 12 manual/);
  const { versions } = await json('snapshots_history', { path: 'same' });
  assert.deepEqual(versions.map((v) => v.status), [...Array(11).fill('modified'), 'new']);
  const joined = await json('snapshots_compact', { checkpoints: ['cp-12', 'cp-13', 'cp-14'] });
  assert.equal(joined.merged_count, 3);
  const list = await json('snapshots_list', { format: 'json' });
  assert.equal(list.snapshots.length, 10);
  assert.equal(list.manual_available, 2);
  await json('snapshots_revert', { path: 'same', checkpoint: joined.checkpoint });
  assert.equal(readFileSync(`${work}/same`, 'utf8'), 'version 14');
});

test('D12 a revert is recorded', async (t) => {
  const work = folder(t, 'work');
  const profile = {
    ...files({ path: work, write: true, snapshots: { path: folder(t, 'kept'), interval_s: 0 } }),
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
  };
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  writeFileSync(`${work}/a`, 'abc');
  await client.tool('files__snapshots_create', { name: 'one' });
  writeFileSync(`${work}/a`, '');
  await client.tool('files__snapshots_revert', { path: 'a' });
  const records = new Records(gateway);
  await records.until('SELECT count(*) FROM fs_events', (n) => n === 1);
  assert.deepEqual(await records.rows('SELECT action, path, size FROM fs_events'), [['restored', 'a (from cp-10)', 3]]);
  assert.deepEqual(await records.rows('SELECT slot, origin, name, files_count FROM snapshot_events'), [[10, 'manual', 'one', 1]]);
});

test('a reverted file has its previous owner if the process is permitted to set it', async (t) => {
  if (process.getuid() !== 0) throw new Skip('owner-restored: only root can give files away');
  for (const [mode, args, owner] of [['one process', ['--single-process'], 60998], ['compartments', [], 0]]) {
    const { work, json } = await kept(t, {}, { args }, mode.replace(' ', '-'));
    writeFileSync(`${work}/a`, 'one', { mode: 0o644 });
    chownSync(`${work}/a`, 60998, 60998);
    await json('snapshots_create', { name: 'one' });
    rmSync(`${work}/a`);
    assert.equal((await json('snapshots_revert', { path: 'a' })).action, 'restored', mode);
    assert.equal(lstatSync(`${work}/a`).uid, owner, mode);
    assert.equal(readFileSync(`${work}/a`, 'utf8'), 'one', mode);
  }
});

test('D15 there are at most ten automatic snapshots, and the oldest is replaced', async (t) => {
  const { work, json } = await kept(t, { interval_s: 1 });
  let count = 0;
  const seen = new Set();
  const automatic = async () => {
    const { snapshots } = await json('snapshots_list', { format: 'json' });
    assert.ok(snapshots.length <= 10);
    for (const one of snapshots) seen.add(one.hash);
    return snapshots;
  };
  // Makes a change after each snapshot until there are twelve.
  await until('twelve snapshots', async () => {
    await automatic();
    if (seen.size > count) writeFileSync(`${work}/f`, `change ${++count}`);
    return seen.size >= 12;
  }, 60_000);
  const snapshots = await automatic();
  assert.equal(snapshots.length, 10);
  assert.deepEqual(new Set(snapshots.map((one) => one.slot)), new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
}, { timeout: 90_000 });

test('D16 D17 snapshot tools require a configured path, and JSON is never wrapped', async (t) => {
  const { client, call, work } = await kept(t);
  assert.equal((await client.toolNames()).filter((name) => name.includes('snapshots_')).length, 7);
  writeFileSync(`${work}/a`, 'a');
  JSON.parse(text(await call('snapshots_create', { name: 'one' })));
  writeFileSync(`${work}/a`, 'b'.repeat(9000));
  for (const tool of ['snapshots_list', 'snapshots_changes']) {
    const result = await call(tool, { format: 'json', max_length: 10 });
    assert.equal(result.content.length, 1);
    JSON.parse(text(result));
    assert.equal(typeof result.structuredContent, 'object');
  }
  const plain = await t.http(await t.gateway(files({ path: work })));
  assert.deepEqual((await plain.toolNames()).filter((name) => name.includes('snapshots_')), []);
});

test('a killed compartment restarts with its snapshots', async (t) => {
  const { work, gateway, json, call } = await kept(t);
  writeFileSync(`${work}/a`, 'a');
  await json('snapshots_create', { name: 'one' });
  const pidOf = async () => (await statusOf(gateway)).compartments.find((c) => c.name === 'files' && c.state === 'running')?.pid;
  const pid = await pidOf();
  process.kill(pid, 'SIGKILL');
  await until('another process', async () => ![undefined, pid].includes(await pidOf()));
  writeFileSync(`${work}/a`, 'b');
  await until('it answers', async () => !(await call('dir_list', {})).isError);
  assert.equal((await json('snapshots_revert', { path: 'a' })).action, 'restored');
  assert.equal((await json('snapshots_create', { name: 'two' })).checkpoint, 'cp-11');
});

await run();
