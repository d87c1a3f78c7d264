// Tests the session database: its contents, the commands that read it, and the detection of changes
// to its files.
import { execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Gateway, StdioClient, assert, fake, member, program, run, runProgram, sanitized, show, test, until } from './lib.mjs';
import { Records, tamper } from './records.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${trace}-00f067aa0ba902b7-01`;

for (const place of ['compartments', 'single-process']) {
  const args = place === 'single-process' ? ['--single-process'] : [];
  const recorded = async (t, { tools = ['ok'], telemetry = {}, servers = {}, ...profile } = {}) => {
    const gateway = await t.gateway(
      {
        mcpServers: { local: fake(...tools.flatMap((tool) => ['--tool', tool])), ...servers },
        telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20, ...telemetry } },
        ...profile,
      },
      { args },
    );
    return { gateway, records: new Records(gateway) };
  };

  test(`B31 mcp_calls has its 19 columns, in order (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    await (await t.http(gateway)).tool('local__ok');
    await records.until('SELECT count(*) FROM mcp_calls', (n) => n > 0);
    const [[columns]] = await records.rows(
      "SELECT sql FROM sqlite_schema WHERE name = 'mcp_calls'");
    const names = columns.slice(columns.indexOf('(') + 1).split(',').map((line) => line.trim().split(/\s/)[0]);
    assert.deepEqual(names.slice(0, 19), [
      'id', 'timestamp', 'server_name', 'method', 'tool_name', 'request_id', 'request_preview', 'response_preview',
      'decision', 'duration_ms', 'error_message', 'process_name', 'bytes_sent', 'bytes_received', 'policy_mode',
      'policy_action', 'policy_rule', 'policy_reason', 'trace_id']);
  });

  test(`B32 one row for each call (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, {
      servers: { slow: fake('--tool', 'slow', '--delay', 'slow=40') },
    });
    const client = await t.http(gateway, { initialize: false, initialized: false });
    await client.initialize();
    await client.tools();
    await client.call('resources/list', {});
    const sent = [];
    for (let i = 0; i < 4; ++i) {
      const params = `{"name":"local__ok","arguments":{"n":${i},"t":"€"}}`;
      sent.push([Buffer.byteLength(params), (await client.request('tools/call', params)).resultText]);
    }
    await client.tool('slow__slow');
    await records.until('SELECT count(*) FROM mcp_calls', (n) => n >= 8);
    assert.deepEqual(await records.rows('SELECT count(*) FROM mcp_calls'), [[8]]);
    assert.deepEqual(
      await records.rows('SELECT method, server_name, tool_name, decision FROM mcp_calls ORDER BY id'),
      [
        ['initialize', 'gateway', null, 'allowed'],
        ['tools/list', '*', null, 'allowed'],
        ['resources/list', '*', null, 'allowed'],
        ...Array.from({ length: 4 }, () => ['tools/call', 'local', 'ok', 'allowed']),
        ['tools/call', 'slow', 'slow', 'allowed'],
      ]);
    const lengths = await records.rows(
      "SELECT bytes_sent, bytes_received, length(CAST(request_preview AS BLOB)), response_preview FROM mcp_calls WHERE server_name = 'local' ORDER BY id");
    lengths.forEach(([params, result, kept, response], i) => {
      assert.equal(params, sent[i][0]);
      assert.equal(kept, params);
      assert.equal(response, sent[i][1]);
      assert.equal(result, Buffer.byteLength(response));
    });
    const [[ms]] = await records.rows("SELECT duration_ms FROM mcp_calls WHERE tool_name = 'slow'");
    assert.ok(ms > 0, `${ms}`);
    await client.notify('notifications/initialized');
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'notifications/initialized'", (n) => n === 1);
  });

  test(`B33 a row contains the trace of its request (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    const client = await t.http(gateway);
    await client.tool('local__ok', {}, { meta: { traceparent } });
    await client.tool('local__ok', {});
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 2);
    const rows = await records.rows("SELECT trace_id FROM mcp_calls WHERE method = 'tools/call' ORDER BY id");
    assert.equal(rows[0][0], trace);
    assert.match(rows[1][0], /^[0-9a-f]{32}$/);
    const [[session]] = await records.rows("SELECT trace_id FROM mcp_calls WHERE method = 'initialize'");
    assert.equal(rows[1][0], session);
  });

  test(`B34 a preview has at most 256 KiB and is valid UTF-8 (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    const client = await t.http(gateway);
    await client.tool('local__ok', { t: 'x' + '€'.repeat(350_000) });
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 1);
    const [[chars, bytes, hex, flags]] = await records.rows(
      "SELECT length(request_preview), length(CAST(request_preview AS BLOB)), hex(substr(CAST(request_preview AS BLOB), -3)), flags FROM mcp_calls WHERE method = 'tools/call'");
    assert.ok(chars <= 262_144 && bytes <= 262_144 && bytes > 262_140, show([chars, bytes]));
    assert.equal(hex, 'E282AC', 'it ends with a whole character');
    assert.equal(flags & 4, 4);
  });

  test(`C10 inspect is read-only (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    await (await t.http(gateway)).tool('local__ok');
    await records.until('SELECT count(*) FROM mcp_calls', (n) => n >= 3);
    const answer = JSON.parse((await records.inspect('SELECT id, method FROM mcp_calls ORDER BY id LIMIT 1', '--json')).stdout);
    assert.deepEqual(answer, { columns: ['id', 'method'], rows: [[1, 'initialize']] });
    for (const sql of ['DELETE FROM mcp_calls', 'PRAGMA journal_mode=DELETE', "ATTACH '/tmp/x' AS x", 'UPDATE mcp_calls SET id = 1']) {
      const refused = await records.inspect(sql).catch((error) => error);
      assert.equal(refused.code, 1, sql);
      assert.match(refused.stderr, /is not allowed: only SELECT, WITH and EXPLAIN/);
    }
    const endless = await records.inspect(
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n').catch((error) => error);
    assert.equal(endless.code, 1);
    assert.match(endless.stderr, /timed out after 5 s/);
    const many = JSON.parse((await records.inspect(
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n', '--json')).stdout);
    assert.equal(many.rows.length, 10_000);
    assert.equal(many.truncated, true);
    assert.match((await records.inspect('SELECT method FROM mcp_calls')).stdout, /METHOD|method/);
    const wrong = await records.inspect('SELECT no_such FROM mcp_calls').catch((error) => error);
    assert.match(wrong.stderr, /no such column: no_such.*--schema/);
    const long = await records.inspect('SELECT instr(zeroblob(16000000), zeroblob(8000000) || 1)').catch((error) => error);
    assert.match(String(long.stderr), /the query was stopped/, show(long));
  });

  test(`C11 inspect --schema prints the schema (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    await (await t.http(gateway)).tools();
    const { stdout } = await records.inspect('--schema');
    const empty = new DatabaseSync(':memory:');
    empty.exec(stdout);
    const tables = empty.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all().map(({ name }) => name);
    for (const table of ['mcp_calls', 'net_events', 'fs_events']) {
      assert.ok(tables.includes(table), `${table} is among ${tables}`);
      assert.equal(empty.prepare(`SELECT count(*) AS n FROM ${table}`).get().n, 0);
    }
    empty.close();
    // The printed schema must match the file, column by column.
    const columns = (db, table) => db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all().map(({ name }) => name);
    const fresh = new DatabaseSync(':memory:');
    fresh.exec(stdout);
    const file = new DatabaseSync(records.files()[0], { readOnly: true });
    for (const table of tables) assert.deepEqual(columns(fresh, table), columns(file, table), table);
    file.close();
    fresh.close();
  });

  test(`the audit log is complete and signed, and verify reports a changed row (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, { telemetry: { checkpoint_rows: 5 } });
    const client = await t.http(gateway);
    for (let i = 0; i < 20; ++i) await client.tool('local__ok', { i });
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 20);
    await gateway.stop();
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
    assert.equal(report.signatures_checked, true);
    assert.equal(report.unsigned_rows, 0);
    assert.ok(report.checkpoints >= 2, show(report));
    assert.match((await records.verify()).stdout, /: intact\. \d+ rows in 1 file, \d+ signed checkpoints\n/);
    // The key is stored outside all plugin directories.
    assert.match(readFileSync(join(records.state, 'audit/supervisor/public-key'), 'utf8'), /^[0-9a-f]{64}\n$/);
    assert.equal(statSync(join(records.state, 'secrets/@audit/ed25519')).mode & 0o777, 0o600);
    const file = records.files()[0];
    assert.ok(!readFileSync(file).includes(readFileSync(join(records.state, 'secrets/@audit/ed25519'))));
    await tamper(file, "UPDATE mcp_calls SET tool_name = 'other' WHERE id = 7");
    const broken = await records.verify().catch((error) => error);
    assert.equal(broken.code, 1);
    assert.match(broken.stdout, /BROKEN\n {2}.*calls-1-000001\.db: mcp_calls id 7 \(seq \d+\) was changed/);
    const named = await records.verify(file).catch((error) => error);
    assert.match(named.stdout, /mcp_calls id 7/);
  });

  test(`rows removed from the end are detected if they were signed (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, { telemetry: { checkpoint_rows: 5 } });
    const client = await t.http(gateway);
    for (let i = 0; i < 20; ++i) await client.tool('local__ok', { i });
    await gateway.stop();
    await tamper(records.files()[0], `DELETE FROM mcp_calls WHERE id > 5; DELETE FROM audit_marks WHERE seq > 6;
      DELETE FROM audit_checkpoints WHERE seq > 6`);
    const broken = await records.verify().catch((error) => error);
    assert.match(broken.stdout, /BROKEN\n.*the supervisor has signed the rows up to seq/s);
    const named = await records.verify(records.files()[0]).catch((error) => error);
    assert.match(named.stdout, /BROKEN\n.*the supervisor has signed the rows up to seq/s);
    rmSync(records.files()[0]);
    writeFileSync(join(records.folder, 'calls-2-000001.db'), '');
    const gone = await records.verify().catch((error) => error);
    assert.match(gone.stdout, /chain 1: BROKEN\n {2}all its files are missing, but the supervisor signed rows up to seq/);
    assert.equal(gone.code, 1);
    rmSync(records.folder, { recursive: true });
    const none = await records.verify().catch((error) => error);
    assert.match(none.stdout, /chain 1: BROKEN\n {2}all its files are missing, but the supervisor signed rows up to seq/);
    assert.equal(none.code, 1);
    const [one] = JSON.parse((await records.command('audit', 'verify', '--json').catch((error) => error)).stdout);
    assert.match(one.broken, /all its files are missing/);
  });

  test(`a copy of a file is verified by its signatures (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, { telemetry: { checkpoint_rows: 5 } });
    const client = await t.http(gateway);
    for (let i = 0; i < 10; ++i) await client.tool('local__ok', { i });
    await records.until('SELECT count(*) FROM audit_checkpoints', (n) => n >= 1);
    for (let i = 0; i < 10; ++i) await client.tool('local__ok', { i });
    await gateway.stop();
    const copy = t.path('copy.db');
    copyFileSync(records.files()[0], copy);
    const key = join(records.state, 'audit/supervisor/public-key');
    assert.match((await records.verify(copy, '--key', key)).stdout, /signed checkpoints? of "records"\n/);
    await records.verify(copy, '--key', key, '--instance', 'records');
    const other = await records.verify(copy, '--key', key, '--instance', 'other').catch((error) => error);
    assert.match(other.stdout, /is for the instance "records", not for "other"/);
    const db = new DatabaseSync(copy);
    db.exec('DELETE FROM audit_checkpoints WHERE id > 1');
    db.close();
    assert.match((await records.verify(copy, '--key', key)).stdout, /rows are not signed yet/);
    const few = await records.verify(copy, '--key', key, '--max-unsigned', '5').catch((error) => error);
    assert.equal(few.code, 1);
    assert.match(few.stdout, /NOT PROVEN\n {2}the last \d+ rows are not signed/);
    const all = new DatabaseSync(copy);
    all.exec('DELETE FROM audit_checkpoints');
    all.close();
    const nothing = await records.verify(copy, '--key', key).catch((error) => error);
    assert.equal(nothing.code, 1);
    assert.match(nothing.stdout, /NOT PROVEN\n {2}none of its rows are signed/);
  });

  test(`credentials are masked, arguments of rejected calls are not recorded (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    const client = await t.http(gateway);
    await client.tool('local__ok', { password: 'hunter2-canary', note: `it is ghp_${'a'.repeat(36)}` });
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 1);
    const [[request]] = await records.rows("SELECT request_preview FROM mcp_calls WHERE method = 'tools/call'");
    assert.equal(request, '{"name":"local__ok","arguments":{"password":"***","note":"it is ***"}}');
    const inner = JSON.stringify({ password: 'hunter2-canary', user: 'me' });
    await client.request('tools/call',
      `{"name":"local__ok","arguments":{"p\\u0061ssword":"hunter2-canary","text":${JSON.stringify(inner)},` +
      `"url":"https://h/?password%3Dhunter2-canary","note":"password\\u003dhunter2-canary"}}`);
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 2);
    const [[escaped]] = await records.rows("SELECT request_preview FROM mcp_calls WHERE method = 'tools/call' ORDER BY id DESC LIMIT 1");
    assert.deepEqual(JSON.parse(escaped).arguments, {
      password: '***', text: '{"password":"***","user":"me"}', url: 'https://h/?password%3D***', note: 'password=***',
    });
    await gateway.stop();
    for (const name of readdirSync(records.folder)) {
      assert.ok(!readFileSync(join(records.folder, name)).includes('hunter2-canary'), name);
    }
  });

  test(`the gateway's own credentials are masked by value (${place})`, async (t) => {
    const canary = 'tango seven foxtrot of no known shape';
    const { gateway, records } = await recorded(t, {
      servers: { keyed: { ...fake('--tool', 'ok'), env: { API_TOKEN: canary, HARMLESS: 'a value that may be seen' } } },
    });
    const client = await t.http(gateway);
    await client.tool('local__ok', { note: `it is <${canary}>`, other: 'a value that may be seen' });
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 1);
    const [[request, response]] = await records.rows("SELECT request_preview, response_preview FROM mcp_calls WHERE method = 'tools/call'");
    assert.equal(request, '{"name":"local__ok","arguments":{"note":"it is <***>","other":"a value that may be seen"}}');
    assert.ok(!response.includes(canary), response);
    await gateway.stop();
    for (const name of readdirSync(records.folder)) assert.ok(!readFileSync(join(records.folder, name)).includes(canary), name);
  });

  test(`the gateway's own credentials are masked behind escapes (${place})`, async (t) => {
    const canary = 'tango-7/seven=foxtrot of "no" shape==';
    const { gateway, records } = await recorded(t, {
      servers: { keyed: { ...fake('--tool', 'ok'), env: { API_TOKEN: canary } } },
    });
    const client = await t.http(gateway);
    const units = (text) => [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    const quoted = JSON.stringify(canary);
    const written = {
      plain: quoted,
      equals: quoted.replaceAll('=', '\\u003D'),
      units: `"${units(canary)}"`,
      slash: quoted.replaceAll('/', '\\/'),
      one: quoted.replace('o', '\\u006f'),
      nested: JSON.stringify(JSON.stringify({ deep: JSON.stringify([canary]) })),
      nested_slash: JSON.stringify(`{"deep":${quoted.replaceAll('/', '\\/')}}`),
      nested_units: JSON.stringify(`{"deep":"${units(canary)}"}`),
      percent: `"https://host/?q=${encodeURIComponent(canary)}"`,
      percents: `"https://host/?q=${encodeURIComponent(encodeURIComponent(canary))}"`,
      form: `"q=${encodeURIComponent(canary).replaceAll('%20', '+')}&r=1"`,
    };
    const members = Object.entries(written).map(([name, text]) => `"${name}":${text}`).join(',');
    await client.request('tools/call', `{"name":"local__ok","arguments":{${members}}}`);
    await assert.rejects(client.request('tools/call', `{"name":"${units(canary)}","arguments":{}}`));
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 2);
    const [[request]] = await records.rows("SELECT request_preview FROM mcp_calls WHERE tool_name = 'ok'");
    const kept = JSON.parse(request).arguments;
    assert.deepEqual(Object.keys(kept), Object.keys(written), request);
    for (const name of ['plain', 'equals', 'units', 'slash', 'one']) assert.equal(kept[name], '***', name);
    assert.deepEqual(JSON.parse(kept.nested), { deep: '["***"]' });
    assert.equal(kept.form, 'q=***&r=1');
    // The secret must not appear, however many levels of escaping are removed.
    const plain = (text) => {
      for (let i = 0; i < 6; ++i) {
        text = text
          .replace(/\\u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
          .replace(/\\(["\\/])/g, '$1')
          .replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
      }
      return text;
    };
    const parts = [canary, canary.replaceAll(' ', '+'), 'tango-7', 'foxtrot'];
    const seen = [];
    for (const words of [['timeline', '--since', '1h'], ['calls', '--json'], ['inspect', '--json', 'SELECT * FROM mcp_calls']]) {
      const { stdout } = await records.command(...words);
      assert.match(stdout, /local/, words.join(' '));
      seen.push([words.join(' '), stdout]);
    }
    await gateway.stop();
    for (const name of readdirSync(records.folder)) seen.push([name, readFileSync(join(records.folder, name), 'latin1')]);
    for (const [where, text] of seen) {
      for (const part of parts) assert.ok(!plain(text).includes(part), `${where}: ${part}`);
    }
  });

  test(`timeline, calls and calls --follow show the recorded calls (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    const client = await t.http(gateway);
    await client.tool('local__ok', {}, { meta: { traceparent } });
    await assert.rejects(client.tool('local__nothing'));
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 2);
    const rows = JSON.parse((await records.command('timeline', '--since', '1h', '--json')).stdout);
    assert.deepEqual(Object.keys(rows[0]), ['timestamp', 'layer', 'ref', 'summary', 'status', 'duration_ms', 'trace_id', 'claimed_name']);
    assert.deepEqual(rows.map((row) => row.timestamp), rows.map((row) => row.timestamp).sort());
    assert.ok(rows.some((row) => row.layer === 'audit' && row.status === 'start'), show(rows));
    assert.ok(rows.some((row) => row.summary === 'local/ok' && row.status === 'allowed'), show(rows));
    const traced = JSON.parse((await records.command('timeline', '--layers', 'mcp,nonsense', '--trace', trace, '--json')).stdout);
    assert.ok(traced.length === 1 && traced[0].summary === 'local/ok', show(traced));
    for (const words of [['--since', 'yesterday'], ['--layers', 'nonsense']]) {
      assert.equal((await records.command('timeline', ...words).catch((error) => error)).code, 2);
    }
    const follow = spawn(program, ['calls', '--follow', '--json', '--config', gateway.config], { env: gateway.env() });
    t.defer(() => follow.kill('SIGKILL'));
    let said = '';
    follow.stdout.on('data', (data) => (said += data));
    await until('what was', () => said.includes('local__nothing'));
    await client.tool('local__ok', { late: 1 });
    await until('what comes', () => said.trim().split('\n').filter((line) => JSON.parse(line).name === 'ok').length === 2);
    follow.kill('SIGINT');
  });

  test(`calls shows local time, combines filters and hides handshakes (${place})`, async (t) => {
    const blocked = { on: 'mcp.request', if: 'mcp.request.tool_name == "no"', decision: 'block', reason: 'not this one' };
    const { gateway, records } = await recorded(t, {
      tools: ['ok', 'no'],
      servers: { other: fake('--tool', 'ok') },
      security: { rules: { mcp: { blocked } } },
    });
    const client = await t.http(gateway);
    await client.tools();
    await client.tool('local__ok');
    await client.tool('other__ok');
    await assert.rejects(client.tool('local__no'));
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 3);
    const names = ['TIME', 'CLIENT', 'CLAIMED', 'SERVER', 'METHOD', 'NAME', 'DECISION', 'MS', 'NOTE'];
    // Returns the cells by header. Each cell begins below its header, except that MS ends there.
    const calls = async (...words) => {
      const { stdout } = await records.command('calls', ...words);
      const [header, ...lines] = stdout.trimEnd().split('\n');
      assert.deepEqual(header.replace(' (UTC)', '').trim().split(/ +/), names, stdout);
      const at = ['TIME', 'CLIENT', 'CLAIMED', 'SERVER', 'METHOD', 'NAME', 'DECISION'].map((name) => header.indexOf(name));
      for (const line of lines) for (const start of at.slice(1)) assert.equal(line.slice(start - 2, start), '  ', stdout);
      return lines.map((line) => at.map((start, i) => line.slice(start, i + 1 < at.length ? at[i + 1] : start + 8).trim()));
    };
    const brief = (rows) => rows.map(([, , , server, method, name, decision]) => [server, method, name, decision].join(' '));
    assert.deepEqual(brief(await calls()), [
      'local tools/call ok allowed', 'other tools/call ok allowed', 'local tools/call no denied']);
    const all = brief(await calls('--all'));
    assert.ok(all.includes('gateway initialize  allowed') || all.some((line) => line.includes('initialize')), show(all));
    assert.ok(all.some((line) => line.startsWith('* tools/list')), show(all));
    assert.deepEqual(brief(await calls('--server', 'local')), ['local tools/call ok allowed', 'local tools/call no denied']);
    assert.deepEqual(brief(await calls('--tool', 'ok')), ['local tools/call ok allowed', 'other tools/call ok allowed']);
    assert.deepEqual(brief(await calls('--tool', 'ok', '--server', 'other')), ['other tools/call ok allowed']);
    assert.deepEqual(brief(await calls('--denied')), ['local tools/call no denied']);
    assert.deepEqual(brief(await calls('--limit', '1', '--server', 'local')), ['local tools/call no denied']);
    const denied = (await records.command('calls', '--denied')).stdout;
    assert.match(denied, /rule security\.rules\.mcp\.blocked; .*not this one/);
    assert.equal((await records.command('calls', '--denied', '--server', 'other')).stdout, 'No recorded call matches.\n');
    for (const [words, text] of [[['--tool', "o'k"], `tool "o'k"`], [['--server', 'x" OR 1'], 'server "x" OR 1"']]) {
      const failed = await records.command('calls', ...words).catch((error) => error);
      assert.deepEqual([failed.code, failed.stdout], [1, '']);
      assert.ok(failed.stderr.startsWith(`bulkhead: no recorded call has the ${text}`), failed.stderr);
    }
    for (const words of [['--server', ''], ['--tool'], ['--denied=maybe'], ['--local']]) {
      assert.equal((await records.command('calls', ...words).catch((error) => error)).code, 2, words.join(' '));
    }
    // Times are in UTC in the database and in JSON, and in local time in tables.
    const [json] = (await records.command('calls', '--json', '--tool', 'no')).stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.equal(json.decision, 'denied');
    assert.equal(json.transport, 'http');
    const utc = json.timestamp.replace('T', ' ');
    assert.deepEqual((await calls('--utc', '--tool', 'no'))[0][0], utc);
    const ahead = new Date(Date.parse(json.timestamp) + 5.5 * 3_600_000).toISOString().replace('T', ' ').replace('Z', '');
    const local = await execute(program, ['calls', '--tool', 'no', '--config', gateway.config], { env: { ...gateway.env(), TZ: 'TST-5:30' } });
    assert.ok(local.stdout.split('\n')[1].startsWith(`${ahead}  `), `${local.stdout} ${ahead}`);
    assert.ok((await records.command('calls', '--json')).stdout.includes('"method":"initialize"'), 'JSON hides nothing');
    // Filters also apply to new calls.
    const follow = spawn(program, ['calls', '--follow', '--tool', 'ok', '--server', 'local', '--config', gateway.config], { env: gateway.env() });
    t.defer(() => follow.kill('SIGKILL'));
    let said = '';
    follow.stdout.on('data', (data) => (said += data));
    await until('what was', () => said.split('\n').length === 3);
    await client.tool('other__ok');
    await client.tools();
    await client.tool('local__ok');
    await until('what comes', () => said.split('\n').length === 4);
    const [header, ...lines] = said.trimEnd().split('\n');
    assert.deepEqual(header.trim().split(/ +/), names);
    for (const line of lines) assert.match(line, / local +tools\/call +ok +allowed /);
    follow.kill('SIGINT');
  });

  test(`calls selects failed calls and those since a time (${place})`, async (t) => {
    const blocked = { on: 'mcp.request', if: 'mcp.request.tool_name == "no"', decision: 'block' };
    const broken = JSON.stringify({ content: [{ type: 'text', text: 'it is broken' }], isError: true });
    const { gateway, records } = await recorded(t, {
      tools: ['ok', 'no'],
      servers: { other: fake('--tool', 'broken', '--tool', 'dead', '--result', `broken=${broken}`, '--error', 'dead={"code":-32050,"message":"dead"}') },
      security: { rules: { mcp: { blocked } } },
    });
    const client = await t.http(gateway);
    await client.tools();
    await client.tool('local__ok');
    await new Promise((done) => setTimeout(done, 20)); // the times differ by more than a millisecond
    assert.equal((await client.tool('other__broken')).isError, true);
    await assert.rejects(client.tool('other__dead'));
    await assert.rejects(client.tool('local__no'));
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 4);
    const names = async (...words) => {
      const { stdout } = await records.command('calls', '--json', ...words);
      return stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter((row) => row.method === 'tools/call').map((row) => row.name);
    };
    assert.deepEqual(await names(), ['ok', 'broken', 'dead', 'no']);
    assert.deepEqual(await names('--errors'), ['broken', 'dead']);
    assert.deepEqual(await names('--denied'), ['no']);
    assert.deepEqual(await names('--errors', '--denied'), ['broken', 'dead', 'no']);
    assert.deepEqual(await names('--errors', '--tool', 'dead'), ['dead']);
    const [[from]] = await records.rows("SELECT timestamp FROM mcp_calls WHERE tool_name = 'broken'");
    assert.deepEqual(await names('--since', from), ['broken', 'dead', 'no']);
    assert.deepEqual(await names('--since', '1h'), ['ok', 'broken', 'dead', 'no']);
    assert.deepEqual(await names('--since', '2099-01-01T00:00:00Z'), []);
    const wrong = await records.command('calls', '--since', 'yesterday').catch((error) => error);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /--since must be a duration/);
  });

  test(`a limit above the maximum is reduced to it with a note (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    const client = await t.http(gateway);
    await client.tool('local__ok');
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 1);
    for (const [command, most] of [['timeline', 2000], ['calls', 10_000]]) {
      const plain = await records.command(command, '--json');
      for (const limit of [most + 1, 999_999, '99999999999999999999999999', `000${most + 1}`]) {
        const { stdout, stderr } = await records.command(command, '--json', '--limit', String(limit));
        assert.equal(stdout, plain.stdout, `${command} ${limit}`);
        const asked = String(limit).replace(/^0+/, '');
        assert.match(stderr, new RegExp(`--limit ${asked} exceeds the maximum of ${most} rows; using ${most}`));
      }
      assert.equal((await records.command(command, '--limit', String(most))).stderr, '');
      for (const wrong of ['0', '00', '-1', '1.5', 'many', '']) {
        const failed = await records.command(command, `--limit=${wrong}`).catch((error) => error);
        assert.equal(failed.code, 2, `${command} ${wrong}`);
      }
      const failed = await records.command(command, '--limit', 'many').catch((error) => error);
      assert.match(failed.stderr, new RegExp(`'many' is not a valid number of rows: use a whole number from 1 to ${most}`));
    }
  });

  test(`at most the maximum number of rows is printed, and these are the newest (${place})`, async (t) => {
    const { gateway, records } = await recorded(t);
    await (await t.http(gateway)).tool('local__ok');
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 1);
    await gateway.stop();
    const [file] = records.files();
    const db = new DatabaseSync(file);
    const columns = db.prepare("SELECT name FROM pragma_table_info('mcp_calls') WHERE name NOT IN ('id', 'timestamp', 'tool_name')").all().map(({ name }) => name);
    db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050)
      INSERT INTO mcp_calls (timestamp, tool_name, ${columns}) SELECT '2099-01-01T00:00:00.000Z', 'row' || i, ${columns}
      FROM n, (SELECT * FROM mcp_calls WHERE method = 'tools/call')`);
    db.close();
    const rowsOf = async (command, ...words) => {
      const { stdout, stderr } = await records.command(command, '--json', ...words);
      return { stderr, rows: command === 'timeline' ? JSON.parse(stdout) : stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)) };
    };
    for (const [command, most] of [['timeline', 2000], ['calls', 10_000]]) {
      for (const limit of [most, most + 1, most + 50, '99999999999999999999999999']) {
        const { rows, stderr } = await rowsOf(command, '--limit', String(limit));
        assert.equal(rows.length, most, `${command} ${limit}`);
        assert.match(show(rows[0]), new RegExp(`\\brow${10_050 - most + 1}\\b`), `${command} ${limit}`);
        assert.match(show(rows.at(-1)), /\brow10050\b/, `${command} ${limit}`);
        if (limit === most) assert.equal(stderr, '', command);
        else assert.match(stderr, new RegExp(`--limit ${limit} exceeds the maximum of ${most} rows; using ${most}`));
      }
      assert.equal((await rowsOf(command, '--limit', String(most - 1))).rows.length, most - 1);
    }
  });

  test(`a full file is continued in a new file, and both are read together (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, {
      telemetry: { segment_bytes: 524_288, max_bytes: 2_097_152 },
    });
    const client = await t.http(gateway);
    for (let i = 0; i < 60; ++i) {
      await client.tool('local__ok', { i, t: 'y'.repeat(60_000) });
      if (i % 5 === 4) {
        const rows = i + 1;
        await until('written', async () => (await statusOf(gateway)).counters['records.records_written'] >= rows);
      }
    }
    await gateway.stop();
    const files = records.files();
    assert.ok(files.length >= 2 && !files.some((file) => file.endsWith('-000001.db')), show(files));
    assert.ok(files.reduce((sum, file) => sum + statSync(file).size, 0) < 4_194_304);
    const [[first, count]] = await records.rows(
      "SELECT min(id), count(*) = max(id) - min(id) + 1 FROM mcp_calls");
    assert.ok(first > 1);
    assert.equal(count, 1);
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
    assert.ok(report.notes.some((note) => /dropped: calls-1-0000\d\d\.db by max_bytes/.test(note)), show(report.notes));
  });

  test(`every call is recorded once (${place})`, async (t) => {
    const { gateway, records } = await recorded(t, { telemetry: { flush_ms: 250 } });
    const client = await t.http(gateway);
    const calls = Number(process.env.TELEMETRY_CALLS ?? 5000);
    let next = 0;
    await Promise.all(Array.from({ length: 16 }, async () => {
      while (next < calls) await client.tool('local__ok', { i: next++ });
    }));
    await gateway.stop();
    assert.deepEqual(
      await records.rows("SELECT count(*), count(DISTINCT request_preview) FROM mcp_calls WHERE method = 'tools/call'"),
      [[calls, calls]]);
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
    assert.deepEqual(report.notes, []);
  }, { timeout: 120_000 });
}

// Starts a gateway for one client of 2025-03-26, which has batches. `send` sends a message and
// resolves with the responses to it.
async function rawClient(t, wire, profile, args) {
  const revision = { revision: '2025-03-26' };
  if (wire === 'HTTP') {
    const gateway = await t.gateway(profile, { args });
    const client = await t.http(gateway, { ...revision, initialize: false });
    const send = async (message) => {
      const { body, headers } = await client.exchange('POST', { body: message, headers: client.headers() });
      const texts = headers['content-type'].startsWith('application/json') ? [body] : [...body.matchAll(/^data: (.+)$/gm)].map(([, data]) => data);
      return texts.flatMap((text) => JSON.parse(text));
    };
    return { gateway, client, send, stop: () => gateway.stop() };
  }
  const gateway = new Gateway(t.dir, profile, { args });
  const client = new StdioClient(...gateway.stdioCommand(), revision);
  t.defer(() => client.close());
  t.gateways.push({ stderr: () => client.stderr });
  const send = async (message) => {
    const from = client.lines.length;
    client.write(message);
    const line = await until('a response', () => client.lines.slice(from).find((text) => text.startsWith('[') || member(text, 'method') === undefined));
    return [JSON.parse(line)].flat();
  };
  return { gateway, client, send, stop: () => client.close() };
}

for (const [wire, mode] of [['HTTP', 'batch'], ['stdio', 'batch'], ['HTTP', 'full'], ['stdio', 'full']]) {
  test(`each rejected message has one row, like each response (${wire}, mode ${mode})`, async (t) => {
    const { gateway, client, send, stop } = await rawClient(t, wire, {
      mcpServers: { local: fake('--tool', 'ok') },
      telemetry: { records: { plugin: 'telemetry-sqlite', mode } },
    }, wire === 'HTTP' ? [] : ['--single-process']);
    const records = new Records(gateway);
    const twice = (method, member, name) => (id) =>
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"${member}":"${name}","arguments":{"k":"s3cret"},"${member}":"local__s3cret"}}`;
    const good = (id) => client.message('tools/call', { name: 'local__ok', arguments: { id } }, id);
    const ping = (id) => client.message('ping', undefined, id);
    const batch = (n, message = ping) => `[${Array.from({ length: n }, (_, i) => message(i + 1)).join()}]`;
    const errors = (answers) => answers.filter(({ error }) => error).map(({ id, error }) => [id, error.code]);

    let answers = await send(batch(3)); // before the session is initialized, batches are not allowed
    assert.deepEqual(errors(answers), [[undefined, -32600]]);
    let count = 1;
    await client.initialize();
    ++count;
    const cases = [
      [good(10), 1, []],
      [twice('tools/call', 'name', 'local__ok')(11), 1, [[11, -32600]]],
      [twice('resources/read', 'uri', 'file:///a')(12), 1, [[12, -32600]]],
      [twice('prompts/get', 'name', 'local__p')(13), 1, [[13, -32600]]],
      ['{"jsonrpc":"2.0","id":14,"id":15,"method":"tools/call","params":{"name":"local__ok"}}', 1, [[undefined, -32600]]],
      [batch(2, good), 2, []],
      [`[${good(20)},${twice('tools/call', 'name', 'local__ok')(21)},[${good(22)}],${good(23)}]`, 4, [[21, -32600], [undefined, -32600]]],
      [batch(256), 256, []],
      [batch(300), 257, [[undefined, -32600]]],
    ];
    for (const [message, expected, failed] of cases) {
      answers = await send(message);
      assert.equal(answers.length, expected, message);
      assert.deepEqual(errors(answers), failed, message);
      count += expected;
    }
    await stop();

    assert.deepEqual(await records.rows("SELECT count(*) FROM mcp_calls WHERE method NOT LIKE 'notifications/%'"), [[count]]);
    const rejected = await records.rows(`SELECT method, tool_name, target, request_id, error_message LIKE '%at most 256 messages%',
      error_message, json_extract(response_preview, '$.message') FROM mcp_calls WHERE decision = 'error' ORDER BY id`);
    assert.deepEqual(rejected.map((row) => row.slice(0, 5)), [
      ['unknown', null, null, null, 0],
      ['tools/call', 'local__ok', 'local__ok', '11', 0],
      ['resources/read', null, 'file:///a', '12', 0],
      ['prompts/get', null, 'local__p', '13', 0],
      ['tools/call', 'local__ok', 'local__ok', null, 0],
      ['tools/call', 'local__ok', 'local__ok', '21', 0],
      ['unknown', null, null, null, 0],
      ['unknown', null, null, null, 1],
    ]);
    for (const [error, message] of rejected.map((row) => row.slice(5))) assert.equal(error, message);
    assert.deepEqual(await records.rows(
      "SELECT count(*), count(request_preview), sum(outcome = 'error'), sum(server_name = 'gateway') FROM mcp_calls WHERE decision = 'error'"), [[8, 0, 8, 8]]);
    assert.deepEqual(await records.rows("SELECT count(*) FROM mcp_calls WHERE ifnull(target, '') || ifnull(request_preview, '') || response_preview || ifnull(error_message, '') LIKE '%s3cret%'"), [[0]]);
    assert.deepEqual(await records.rows("SELECT count(*) FROM mcp_calls WHERE tool_name = 'ok' AND decision = 'allowed'"), [[5]]);
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
  });
}

test('the session database has a private compartment with access only to its directory', async (t) => {
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'ok') },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
  });
  const records = new Records(gateway);
  await (await t.http(gateway)).tool('local__ok');
  await records.until('SELECT count(*) FROM mcp_calls', (n) => n >= 3);
  const status = await until('it counts', async () => {
    const now = await statusOf(gateway);
    return now.counters['records.records_written'] >= 3 && now;
  });
  const own = status.compartments.find((one) => one.name === 'telemetry.records');
  assert.equal(own.state, 'running');
  if (!sanitized) assert.ok(own.in_force.includes('seccomp'), show(own));
  const { stdout } = await execute(program, ['status'], { env: gateway.env() });
  assert.match(stdout, /records: \d+ written/);
});

test('a killed writer is restarted; unwritten records show as a gap', async (t) => {
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'ok') },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 10_000 } },
  });
  const records = new Records(gateway);
  const client = await t.http(gateway);
  await client.tool('local__ok', { before: 1 });
  const pidOf = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'telemetry.records');
  const { pid } = await until('it runs', async () => {
    const one = await pidOf();
    return one?.state === 'running' && one;
  });
  await new Promise((done) => setTimeout(done, 600)); // the plugin has received the records but has not written them yet
  process.kill(pid, 'SIGKILL');
  await until('it runs again', async () => {
    const one = await pidOf();
    return one?.state === 'running' && one.pid !== pid;
  });
  await client.tool('local__ok', { after: 1 });
  await gateway.stop();
  const [report] = JSON.parse((await records.verify('--json')).stdout);
  assert.equal(report.whole, true, show(report));
  assert.ok(report.notes.some((note) => / unclean: /.test(note)), show(report.notes));
  assert.equal((await records.rows("SELECT count(*) FROM mcp_calls WHERE request_preview LIKE '%after%'"))[0][0], 1);
});

test('kill -9 of all processes damages nothing', async (t) => {
  const profile = {
    mcpServers: { local: fake('--tool', 'ok') },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 10, checkpoint_rows: 10 } },
  };
  const rounds = Number(process.env.TELEMETRY_ROUNDS ?? 3);
  const state = t.path('state');
  for (let round = 0; round < rounds; ++round) {
    const gateway = await t.gateway(profile, { env: { XDG_STATE_HOME: state } });
    const client = await t.http(gateway);
    for (let i = 0; i < 40; ++i) await client.tool('local__ok', { round, i });
    // Before the first signature, there is no key for the verification.
    await until('something is signed', () => existsSync(join(state, 'bulkhead/audit/supervisor/public-key')));
    gateway.mayExit = true;
    process.kill(gateway.pid, 'SIGKILL');
    await gateway.exited;
    const records = new Records(gateway, join(state, 'bulkhead'));
    await until('its processes have ended', async () => (await records.verify('--json').then(() => true, (error) => error.code === 1)));
    const reports = JSON.parse((await records.verify('--json')).stdout);
    assert.ok(reports.every((report) => report.whole), show(reports));
  }
}, { timeout: 120_000 });

const full = { records: { plugin: 'telemetry-sqlite', mode: 'full', checkpoint_rows: 50 } };
for (const args of [[], ['--single-process']]) {
  test(`full: a response is recorded with its intent before it is sent ${args}`, async (t) => {
    const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'ok') }, telemetry: full }, { args });
    const records = new Records(gateway);
    const client = await t.http(gateway);
    for (let i = 0; i < 20; ++i) {
      await client.tool('local__ok', { i });
      const [[calls, intents]] = await records.rows(
        "SELECT (SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'), (SELECT count(*) FROM call_intents)");
      assert.deepEqual([calls, intents], [i + 1, i + 1]);
    }
    assert.deepEqual(await records.rows(
      'SELECT count(*) FROM mcp_calls JOIN call_intents ON call_intents.record_number = mcp_calls.intent'), [[20]]);
    await gateway.stop();
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
  });
}

test('full: kill -9 of all processes loses no call that has a response', async (t) => {
  const rounds = Number(process.env.TELEMETRY_ROUNDS ?? 3);
  const state = t.path('state');
  let lost = 0;
  for (let round = 0; round < rounds; ++round) {
    const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'ok') }, telemetry: full }, { env: { XDG_STATE_HOME: state } });
    const clients = [await t.http(gateway), await t.http(gateway), await t.http(gateway)];
    const answered = [];
    // Calls are made until the gateway has exited.
    const calling = clients.map(async (client, c) => {
      for (let i = 0, runs = true; runs; ++i) {
        const key = `${round}-${c}-${i};`;
        runs = await client.tool('local__ok', { key }).then(() => true, () => false);
        if (runs) answered.push(key);
      }
    });
    const key = join(state, 'bulkhead/audit/supervisor/public-key'); // created with the first signature
    await until('some are answered', () => answered.length > 20 + Math.floor(Math.random() * 100) && existsSync(key));
    gateway.mayExit = true;
    process.kill(gateway.pid, 'SIGKILL');
    await gateway.exited;
    await Promise.all(calling);
    const records = new Records(gateway, join(state, 'bulkhead'));
    const known = new Set((await until('the file is readable', () =>
      records.rows(`SELECT request_preview FROM mcp_calls WHERE request_preview LIKE '%"${round}-%'`).catch(() => undefined)))
      .map(([request]) => JSON.parse(request).arguments.key));
    lost += answered.filter((key) => !known.has(key)).length;
    const reports = JSON.parse((await records.verify('--json')).stdout);
    assert.ok(reports.every((report) => report.whole), show(reports));
  }
  assert.equal(lost, 0);
}, { timeout: 300_000 });

test('full: calls wait for a restarted writer, and no record is lost', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'ok') }, telemetry: full });
  const records = new Records(gateway);
  const client = await t.http(gateway);
  const keeper = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'telemetry.records');
  await client.tool('local__ok', { i: 0 });
  for (let i = 1; i <= 3; ++i) {
    const { pid } = await until('it runs', async () => {
      const one = await keeper();
      return one?.state === 'running' && one;
    });
    process.kill(pid, 'SIGKILL');
    await client.tool('local__ok', { i });
  }
  await gateway.stop();
  assert.deepEqual(await records.rows("SELECT count(*), count(DISTINCT request_preview) FROM mcp_calls WHERE method = 'tools/call'"), [[4, 4]]);
  const [report] = JSON.parse((await records.verify('--json')).stdout);
  assert.ok(report.whole && !report.notes.some((note) => / gap: /.test(note)), show(report));
});

test('full: on_failure = "spill" is rejected with a remedy', (t) => {
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0'],
    { profile: { mcpServers: {}, telemetry: { records: { ...full.records, on_failure: 'spill' } } } });
  assert.equal(done.code, 1, show(done));
  assert.match(done.stderr, /mode "full" rejects calls whose records cannot be stored.*remove on_failure/);
});

test('without a session database, inspect reports how to enable it', async (t) => {
  const gateway = await t.gateway({ mcpServers: {} });
  const refused = await new Records(gateway).inspect('SELECT 1').catch((error) => error);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /no session database found in [^]*\n {4}\[telemetry\.records\]\n {4}plugin = "telemetry-sqlite"\n/);
});

test('two gateways with the same state directory have two chains', async (t) => {
  const state = t.path('state');
  const profile = {
    mcpServers: { local: fake('--tool', 'ok') },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
  };
  const gateways = [];
  for (let i = 0; i < 2; ++i) gateways.push(await t.gateway(profile, { env: { XDG_STATE_HOME: state } }));
  for (const gateway of gateways) await (await t.http(gateway)).tool('local__ok');
  const records = new Records(gateways[0], join(state, 'bulkhead'));
  await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 2);
  assert.equal(records.files().length, 2);
  for (const gateway of gateways) await gateway.stop();
  const reports = JSON.parse((await records.verify('--json')).stdout);
  assert.ok(reports.length === 2 && reports.every((report) => report.whole), show(reports));
});

// The endpoint is killed 20 times while clients make calls. Each call with a response must have a
// row or be counted in a gap.
for (const failure of ['spill', 'block']) {
  test(`calls that complete just before the endpoint is killed are recorded (on_failure ${failure})`, async (t) => {
    const gateway = await t.gateway({
      mcpServers: { local: fake('--tool', 'ok') },
      telemetry: { records: { plugin: 'telemetry-sqlite', on_failure: failure } },
      limits: { retry_min_ms: 20, retry_max_ms: 100 },
    });
    const records = new Records(gateway);
    const clients = [];
    for (let i = 0; i < 4; ++i) clients.push(await t.http(gateway));
    const answered = new Set();
    let sent = 0, stopped = false;
    const caller = async (client) => {
      while (!stopped) {
        const n = ++sent;
        await client.tool('local__ok', { call: `n${n}-` }).then(() => answered.add(n), () => {});
      }
    };
    const endpoint = () => until('the endpoint runs', async () => {
      const one = (await statusOf(gateway)).compartments.find(({ name }) => name === 'endpoint');
      return one?.state === 'running' && one.pid;
    }, 20_000);
    const callers = clients.map(caller);
    for (let kill = 0; kill < 20; ++kill) {
      const pid = await endpoint();
      const before = answered.size;
      await until('calls are answered', () => answered.size >= before + 10 + 7 * kill, 20_000);
      process.kill(pid, 'SIGKILL');
      await until('it is gone', async () => (await endpoint()) !== pid, 20_000);
    }
    const last = answered.size;
    await until('calls are answered', () => answered.size >= last + 10, 20_000);
    stopped = true;
    await Promise.all(callers);
    await gateway.stop();
    const rows = await records.rows("SELECT request_preview, decision FROM mcp_calls WHERE method = 'tools/call'");
    // The command shows at most 10,000 rows.
    assert.ok(rows.length < 10_000, String(rows.length));
    const times = new Map();
    for (const [request] of rows) {
      const n = Number(/"call":"n(\d+)-"/.exec(request)[1]);
      times.set(n, (times.get(n) ?? 0) + 1);
    }
    const missing = [...answered].filter((n) => !times.has(n));
    const gaps = (await records.rows("SELECT detail FROM audit_marks WHERE kind = 'gap'")).map(([detail]) => detail);
    const counted = gaps.map((detail) => /^records (\d+) to (\d+) are missing/.exec(detail)).map((found) => (found ? found[2] - found[1] + 1 : NaN));
    const sum = counted.reduce((all, n) => all + n, 0);
    assert.ok(sum <= sent, `the gaps count ${sum} of ${sent} calls`);
    assert.ok(missing.length <= sum, `${missing.length} of ${answered.size} answered calls have no row, ${show(gaps)}`);
    assert.deepEqual(missing, [], `no row although there was room: ${show(gaps)}`);
    assert.deepEqual([...times].filter(([, count]) => count !== 1), [], 'each once');
    await records.verify();
  }, { timeout: 180_000 });
}

await run();
