// Tests the options of `bulkhead calls` that find a call and everything else that its client did,
// and runs the recipe in docs/telemetry.md.
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { block } from './documents.mjs';
import { assert, fake, program, run, show, test } from './lib.mjs';
import { Records } from './records.mjs';

const execute = promisify(execFile);

// Two clients call a server and the builtin file tools. Each client has deleted a file.
async function twoClients(t, options = {}) {
  const work = t.path('work');
  mkdirSync(work);
  for (const name of ['a.txt', 'b.txt', 'c.txt']) writeFileSync(join(work, name), name);
  const gateway = await t.gateway({
    mcpServers: { vault: fake('--tool', 'get', '--tool', 'get__all') },
    tools: { work: { plugin: 'builtin-files', path: work, write: true } },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    ...options,
  });
  const records = new Records(gateway);
  const claude = await t.http(gateway, { clientInfo: { name: 'Claude Code', version: '1' } });
  const cursor = await t.http(gateway, { clientInfo: { name: 'Cursor', version: '1' } });
  return { gateway, records, claude, cursor };
}
async function deletions(t, options) {
  const all = await twoClients(t, options);
  const { records, claude, cursor } = all;
  await claude.tool('vault__get', { password: 'hunter2-secret', key: 'k1', note: 'first' });
  await cursor.tool('vault__get__all', { from: 'cursor' });
  await claude.tool('work__file_delete', { path: 'a.txt' });
  await cursor.tool('work__file_delete', { path: 'b.txt' });
  await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 4);
  await records.until('SELECT count(*) FROM fs_events', (n) => n === 2);
  const json = async (...words) => (await records.command('calls', '--json', ...words)).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const names = async (...words) => (await json(...words)).filter((row) => row.method === 'tools/call').map((row) => `${row.claimed_name}: ${row.server_name}/${row.name}`);
  const failure = (...words) => records.command('calls', ...words).then(() => assert.fail(`no error: ${words}`), (error) => error);
  return { ...all, json, names, failure };
}

// Returns the rows of a table by header.
function table(text) {
  const [header, ...lines] = text.trimEnd().split('\n');
  const at = [...header.matchAll(/\S+(?: \(UTC\))?/g)].map((found) => [found[0], found.index]);
  return lines.map((line) => Object.fromEntries(at.map(([name, start], i) => [name, line.slice(start, at[i + 1]?.[1]).trim()])));
}

test('calls accepts the listed name of a tool', async (t) => {
  const { names } = await deletions(t);
  assert.deepEqual(await names('--tool', 'work__file_delete'), ['Claude Code: work/file_delete', 'Cursor: work/file_delete']);
  assert.deepEqual(await names('--tool', 'file_delete'), ['Claude Code: work/file_delete', 'Cursor: work/file_delete']);
  assert.deepEqual(await names('--tool', 'vault__get'), ['Claude Code: vault/get']);
  assert.deepEqual(await names('--tool', 'vault__get__all'), ['Cursor: vault/get__all']);
});

test('calls resolves aliases and shortened names', async (t) => {
  const long = [1, 2].map((n) => `tool_${'x'.repeat(70)}_${n}`);
  const gateway = await t.gateway({
    mcpServers: { vault: fake('--tool', 'get', ...long.flatMap((name) => ['--tool', name])) },
    naming: { separator: '-', aliases: { fetch: 'vault-get' } },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
  });
  const client = await t.http(gateway);
  const records = new Records(gateway);
  const shortened = (await client.toolNames()).filter((name) => name.includes('xxx')).sort();
  assert.equal(shortened.length, 2);
  for (const name of ['vault-get', ...shortened]) await client.tool(name);
  await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 3);
  const names = async (name) => (await records.command('calls', '--json', '--tool', name)).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line).name);
  assert.deepEqual(await names('fetch'), ['get']);
  const found = await Promise.all(shortened.map(names));
  assert.deepEqual(found.map((rows) => rows.length), [1, 1], show(found));
  assert.deepEqual(found.flat().sort(), long);
});

test('a name that never occurs is an error with similar names', async (t) => {
  const { failure, records } = await deletions(t);
  for (const [words, text] of [
    [['--server', 'wrok'], 'no recorded call has the server "wrok"; did you mean "work"?'],
    [['--tool', 'work__file_delte'], 'no recorded call has the tool "work__file_delte"; did you mean "work__file_delete"?'],
    [['--tool', 'gett'], 'no recorded call has the tool "gett"; did you mean "get"?'],
    [['--client', 'Curser'], 'no recorded call has the client "Curser"; did you mean "Cursor"?'],
    [['--json', '--server', 'wrok'], 'no recorded call has the server "wrok"'],
  ]) {
    const { code, stdout, stderr } = await failure(...words);
    assert.equal(code, 1, words.join(' '));
    assert.equal(stdout, '');
    assert.ok(stderr.startsWith(`bulkhead: ${text}`), stderr);
  }
  // The names occur, but not together.
  for (const words of [['--server', 'work', '--tool', 'vault__get'], ['--client', 'Cursor', '--tool', 'get'], ['--denied', '--server', 'vault']]) {
    assert.equal((await records.command('calls', ...words)).stdout, 'No recorded call matches.\n');
  }
});

test('calls selects the calls of a client, a session and a trace', async (t) => {
  const { names, json } = await deletions(t);
  assert.deepEqual(await names('--client', 'Claude Code'), ['Claude Code: vault/get', 'Claude Code: work/file_delete']);
  assert.deepEqual(await names('--client', 'Cursor', '--server', 'work'), ['Cursor: work/file_delete']);
  for (const client of ['Claude Code', 'Cursor']) {
    const [row] = await json('--client', client, '--tool', 'file_delete');
    const expected = (await names()).filter((name) => name.startsWith(client));
    assert.equal(expected.length, 2);
    assert.match(row.session, /^\d+$/);
    assert.deepEqual(await names('--session', row.session), expected);
    assert.deepEqual(await names('--trace', row.trace_id), expected);
  }
});

test('--args shows the session and the masked arguments of each call', async (t) => {
  const { records, json } = await deletions(t);
  const plain = (await records.command('calls')).stdout;
  assert.doesNotMatch(plain, /SESSION|ARGUMENTS|a\.txt/);
  const text = (await records.command('calls', '--args')).stdout;
  const rows = table(text);
  const sessions = Object.fromEntries((await json()).filter((row) => row.method === 'tools/call').map((row) => [row.claimed_name, row.session]));
  assert.deepEqual(rows.map((row) => [row.CLAIMED, row.SESSION, row.ARGUMENTS]), [
    ['Claude Code', sessions['Claude Code'], '{"password":"***","key":"***","note":"first"}'],
    ['Cursor', sessions.Cursor, '{"from":"cursor"}'],
    ['Claude Code', sessions['Claude Code'], '{"path":"a.txt"}'],
    ['Cursor', sessions.Cursor, '{"path":"b.txt"}'],
  ], text);
  assert.doesNotMatch(text, /hunter2|k1/);
  const [row] = await json('--args', '--tool', 'file_delete');
  assert.deepEqual(JSON.parse(row.request_preview).arguments, { path: 'a.txt' });
  assert.equal((await json('--tool', 'file_delete'))[0].request_preview, undefined);
});

test('inspect prints the columns that were asked for, also without a value', async (t) => {
  const { records } = await deletions(t);
  const lines = async (sql) => (await records.inspect(sql)).stdout.split('\n');
  assert.deepEqual(await lines('SELECT NULL AS x, 1 AS y'), ['x  y', '   1', '']);
  assert.deepEqual(await lines("SELECT 'a' AS x, '' AS longer, NULL AS z UNION ALL SELECT 'b', '', NULL"), ['x  longer  z', 'a', 'b', '']);
  assert.deepEqual(await lines('SELECT tool_name, target FROM mcp_calls WHERE 0'), ['tool_name  target', '']);
});

test('doctor records no failed call', async (t) => {
  const { gateway, records } = await deletions(t);
  const count = "SELECT count(*) FROM mcp_calls WHERE transport = 'local' AND method = 'tools/list'";
  assert.deepEqual(await records.rows(count), [[0]]);
  const { stdout } = await execute(program, ['doctor', '--json', '--config', gateway.config], { env: gateway.env(), cwd: gateway.dir }).catch((error) => error);
  const [listed] = JSON.parse(stdout).filter((one) => / tools are listed; the gateway responds to requests$/.test(one.text));
  assert.equal(listed.result, 'ok', show(stdout));
  await records.until(count, (n) => n === 1);
  assert.equal((await records.command('calls', '--errors')).stdout, 'No recorded call matches.\n');
  assert.deepEqual(await records.rows("SELECT claimed_name, method, decision FROM mcp_calls WHERE decision <> 'allowed'"), []);
});

test('audit verify reports that nothing has been signed yet', async (t) => {
  const { gateway, records } = await deletions(t);
  const verify = () => records.verify().then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), ({ code, stdout, stderr }) => ({ code, stdout, stderr }));
  const early = await verify();
  assert.equal(early.code, 1, show(early));
  assert.match(early.stdout, /chain 1: intact/);
  assert.match(early.stderr, /^bulkhead: nothing has been signed yet, so the origin of the rows cannot be verified; the gateway signs .* after a minute and when it stops$/m);
  assert.doesNotMatch(early.stderr, /--key/);
  await gateway.stop();
  const signed = await verify();
  assert.deepEqual([signed.code, signed.stderr], [0, ''], show(signed));
  // Without the key, the signatures cannot be verified.
  rmSync(join(records.state, 'audit/supervisor/public-key'));
  const keyless = await verify();
  assert.equal(keyless.code, 1);
  assert.match(keyless.stderr, /no public key was found, so signatures were not checked; specify it with --key/);
});

test('timeline and calls show local time, or UTC with --utc', async (t) => {
  const { gateway, records } = await deletions(t);
  const env = { ...gateway.env(), TZ: 'TST-5:30' };
  const text = async (command, ...words) => (await execute(program, [command, ...words, '--config', gateway.config], { env })).stdout;
  const stored = (await records.rows("SELECT timestamp FROM mcp_calls WHERE method = 'tools/call' ORDER BY timestamp, id")).flat();
  assert.equal(stored.length, 4);
  const local = stored.map((time) => new Date(Date.parse(time) + 5.5 * 3_600_000).toISOString().replace('T', ' ').replace('Z', ''));
  const utc = stored.map((time) => time.replace('T', ' '));
  for (const [command, ...words] of [['calls'], ['timeline', '--layers', 'mcp']]) {
    const times = (output, column) => table(output).filter((row) => row.METHOD === 'tools/call' || /^(vault|work)\//.test(row.WHAT)).map((row) => row[column]);
    assert.deepEqual(times(await text(command, ...words), 'TIME'), local, command);
    assert.deepEqual(times(await text(command, ...words, '--utc'), 'TIME (UTC)'), utc, command);
  }
  const events = JSON.parse(await text('timeline', '--layers', 'mcp', '--json'));
  assert.deepEqual(events.filter((one) => /^(vault|work)\//.test(one.summary)).map((one) => one.timestamp), stored);
});

// Runs the commands of a recipe in docs/telemetry.md. Placeholders are replaced by values from the
// output of the commands before.
test('the recipe "Who deleted a file?" finds the client and everything else it did', async (t) => {
  const commands = block('docs/telemetry.md', 'bulkhead calls --tool work__file_delete').map((line) => line.replace(/ +#.*$/, ''));
  assert.equal(commands.length, 5, show(commands));
  const { gateway } = await deletions(t);
  const bin = t.path('bin');
  mkdirSync(bin);
  symlinkSync(program, join(bin, 'bulkhead'));
  const shell = async (command) => (await execute('sh', ['-c', `${command} --config '${gateway.config}'`], { env: { ...gateway.env(), PATH: `${bin}:${process.env.PATH}` } })).stdout;
  const [byTool, bySession, byClient, changes, byTrace] = commands;
  const deleted = table(await shell(byTool));
  const found = deleted.find((row) => row.ARGUMENTS.includes('a.txt'));
  assert.deepEqual([found.CLAIMED, found.NAME, deleted.length], ['Claude Code', 'file_delete', 2], show(deleted));
  const did = (rows) => rows.map((row) => `${row.CLAIMED} ${row.SERVER} ${row.NAME} ${row.ARGUMENTS}`);
  const expected = ['Claude Code vault get {"password":"***","key":"***","note":"first"}', 'Claude Code work file_delete {"path":"a.txt"}'];
  assert.deepEqual(did(table(await shell(bySession.replace('SESSION', found.SESSION)))), expected);
  assert.deepEqual(did(table(await shell(byClient))), expected);
  const change = table(await shell(changes)).find((row) => row.WHAT === 'deleted a.txt');
  assert.deepEqual(did(table(await shell(byTrace.replace('TRACE', change.TRACE)))), expected);
});

await run();

test('calls finds a call in the oldest of more files than SQLite can read together', async (t) => {
  const { records, claude } = await twoClients(t, {
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20, segment_bytes: 262_144, max_bytes: 64 << 20 } },
  });
  await claude.tool('vault__get', { note: 'the first call' });
  let calls = 1;
  while (records.files().length < 14) {
    assert.ok(calls < 400, show(records.files()));
    for (let i = 0; i < 5; ++i, ++calls) await claude.tool('vault__get__all', { i, t: 'y'.repeat(60_000) });
    const { stdout } = await records.command('inspect', '--json', 'SELECT max(id) FROM mcp_calls');
    assert.ok(JSON.parse(stdout).rows[0][0] > 0);
  }
  const rows = async (...words) => (await records.command('calls', '--json', ...words)).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const found = await rows('--tool', 'vault__get');
  assert.deepEqual(found.map((row) => row.name), ['get']);
  // The newest rows are printed in chronological order, whatever the number of files.
  const newest = await rows('--limit', '30');
  assert.equal(newest.length, 30);
  assert.ok(newest.every((row, i) => i === 0 || newest[i - 1].timestamp <= row.timestamp), show(newest));
  assert.deepEqual(newest.map((row) => row.name), Array(30).fill('get__all'));

  const { stdout, stderr } = await records.command('timeline', '--json', '--layers', 'mcp', '--limit', '2000');
  const files = records.files().length;
  assert.match(stderr, new RegExp(`only the newest 11 of ${files} files were read`));
  assert.ok(JSON.parse(stdout).every((row) => !row.summary.endsWith('vault__get')));
});
