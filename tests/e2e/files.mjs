// builtin-files through the gateway as it is installed: in its compartment, confined, as the owner
// of the folders.
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { Skip, assert, run, sanitized, test } from './lib.mjs';
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

test('writing works in the compartment, and only where the profile says so', async (t) => {
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

test('D09 nothing outside is read or written', async (t) => {
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

test('files that are written belong to the owner of the folder', async (t) => {
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
  // What belongs to somebody else there stays as it is.
  writeFileSync(`${above}/w/root.txt`, 'mine', { mode: 0o600 });
  refusal(await call('file_read', { path: 'root.txt' }));
  refusal(await call('file_edit', { path: 'root.txt', old_text: 'mine', new_text: 'x' }));
  assert.ok(existsSync(`${above}/w/root.txt`));
});

test('what tools have changed is on record', async (t) => {
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

await run();
