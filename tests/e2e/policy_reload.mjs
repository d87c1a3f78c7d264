// Tests rules that are added, changed or removed while a gateway is running. Rules that are
// reported as in force must decide the next call, and changes that are not in force must be
// reported. Each test runs with compartments and with --single-process.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { basename, join } from 'node:path';
import { Gateway, assert, build, fake, program, run, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn, options) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args), options);
};
const quoted = (text) => JSON.stringify(String(text));
const server = () => fake('--tool', 'a', '--tool', 'b');
const servers = (def = server()) => `[mcpServers.local]\ncommand = ${quoted(def.command)}\nargs = [${def.args.map(quoted).join(', ')}]\n`;
const tool = (name) => `mcp.request.tool_name == "${name}"`;
const rule = (name, blocked) => `[security.rules.mcp.${name}]\non = "mcp.request"\nif = '''${tool(blocked)}'''\ndecision = "block"\n`;
const own = '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n';
const testPolicy = join(build, 'tests/judges/test-policy');

const call = (client, name = 'local__a', args = {}) => client.tool(name, args).then((result) => ({ result }), (error) => ({ error }));
const runs = async (client, name) => assert.ok((await call(client, name)).result, `${name} runs`);
async function blocked(client, name, by) {
  const outcome = await call(client, name);
  assert.match(`${name}: ${outcome.error?.message ?? show(outcome)}`, by);
}
function reload(gateway, ...args) {
  const done = spawnSync(program, ['reload', ...args], { env: gateway.env(), encoding: 'utf8', timeout: 25_000 });
  return { code: done.status, out: done.stdout, err: done.stderr };
}
const write = (gateway, text) => writeFileSync(gateway.config, text);
// Writes the profile, reloads it and checks the exit code.
function reloaded(gateway, text, code = 0) {
  write(gateway, text);
  const done = reload(gateway);
  assert.equal(done.code, code, show(done));
  return done.out;
}

both('rules that a reload adds are in force, and removed rules are not', async (t, args) => {
  const gateway = await t.gateway(servers(), { args });
  const client = await t.http(gateway);
  await runs(client);
  assert.match(reloaded(gateway, servers() + rule('one', 'a')), /policy: 1 rule added, in force \(now 1 rule\)/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  await runs(client, 'local__b');
  await until('lists follow', async () => String(await client.toolNames()) === 'local__b');
  const out = reloaded(gateway, servers() + rule('two', 'b') + rule('three', 'c'));
  assert.match(out, /policy: 2 rules added, 1 rule removed, in force \(now 2 rules\)/);
  await runs(client);
  await blocked(client, 'local__b', /security\.rules\.mcp\.two/);
  assert.match(reloaded(gateway, servers() + rule('two', 'b') + rule('three', 'd')), /policy: 1 rule changed, in force \(now 2 rules\)/);
  assert.match(reloaded(gateway, servers()), /policy: 2 rules removed, in force \(now 0 rules\)/);
  await runs(client, 'local__b');
  assert.doesNotMatch(reloaded(gateway, servers()), /policy/);
  // The position of a key in the file does not matter.
  assert.doesNotMatch(reloaded(gateway, `\n\n${servers()}`), /policy/);
});

// All ways to add the first rule to a gateway without rules. The rule is always the same.
const firsts = {
  'allowed_tools': { text: '[security.servers.local]\nallowed_tools = ["b"]\n', by: /security\.servers\.local\.allowed_tools/, says: /policy: 1 rule added, in force/ },
  'a default': { text: '[security]\ndefault = "block"\n', by: /security\.rules\.mcp\.default/, says: /policy: settings of the rules changed, in force/ },
  'match/action rules': { text: `[profiles.rules.no]\nmatch = 'mcp.tool_call.name == "a"'\naction = "block"\n`, by: /profiles\.rules\.no/, says: /policy: 1 rule added, in force/ },
  'a default of match/action rules': { text: `[default.no]\nmatch = 'mcp.tool_call.name == "a"'\naction = "block"\n`, by: /default\.no/, says: /policy: 1 rule added, in force/ },
};
for (const [what, { text, by, says }] of Object.entries(firsts)) {
  both(`the first rule can be added by reload: ${what}`, async (t, args) => {
    const gateway = await t.gateway(servers(), { args });
    const client = await t.http(gateway);
    await runs(client);
    assert.match(reloaded(gateway, servers() + text), says);
    await blocked(client, 'local__a', by);
  });
}

const callsOf = async (gateway) => (await statusOf(gateway)).counters.calls;
// Calls that are pending while the rules change. They wait for another call, or for a server that
// starts or restarts. `begin` is called before the two pending calls.
const waits = {
  'behind another call': {
    def: fake('--tool', 'a', '--tool', 'b', '--tool', 'slow', '--delay', 'slow=8000'),
    keys: 'max_in_flight = 1\n',
    begin: async (client, gateway) => {
      const before = await callsOf(gateway);
      void call(client, 'local__slow');
      await until('it has come', async () => await callsOf(gateway) === before + 1);
    },
  },
  'for a lazy server': { def: fake('--tool', 'a', '--tool', 'b', '--init-delay', '6000'), keys: 'start = "lazy"\nidle_stop_ms = 300\n' },
  'for a server that starts again': {
    def: fake('--tool', 'a', '--tool', 'b', '--tool', 'end', '--die', 'end', '--init-delay', '6000'),
    keys: '',
    begin: async (client) => { await call(client, 'local__end'); },
  },
};
const policies = { 'the default policy': '', 'a policy in a compartment': own };
for (const [what, { def, keys, begin }] of Object.entries(waits)) {
  for (const [which, policy] of Object.entries(policies)) {
    both(`a call that waits ${what} is evaluated by the rules in force when it continues: ${which}`, async (t, args) => {
      const log = t.path('server.log');
      const profile = servers({ ...def, args: [...def.args, '--log', log] }) + keys + policy;
      // The budget exists before and after the reload, so a pending call is counted only once.
      const twice = '[security.rules.mcp.twice]\non = "mcp.request"\nif = \'\'\'mcp.request.tool_name == "b"\'\'\'\ndecision = "block"\nover = { calls = 2, per = "1h" }\n';
      const gateway = await t.gateway(profile + twice, { args });
      const client = await t.http(gateway);
      await until('the tools are listed', async () => (await client.toolNames()).length >= 2, 30_000);
      if (what === 'for a lazy server') await until('it is not running', async () => (await statusOf(gateway)).servers[0].state === 'idle', 30_000);
      await begin?.(client, gateway);
      const before = await callsOf(gateway);
      const waiting = [call(client, 'local__a'), call(client, 'local__b')];
      await until('both have arrived', async () => await callsOf(gateway) === before + 2);
      reloaded(gateway, profile + twice + rule('late', 'a'));
      const [a, b] = await Promise.all(waiting);
      assert.match(a.error?.message ?? show(a), /blocked by policy \(security\.rules\.mcp\.late\)/);
      assert.ok(b.result, show(b.error?.message));
      const ran = (name) => readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('<') && line.includes('"tools/call"') && line.includes(`"name":"${name}"`)).length;
      assert.equal(ran('a'), 0, 'the server has not seen it');
      assert.equal(ran('b'), 1);
      await runs(client, 'local__b');
      await blocked(client, 'local__b', /security\.rules\.mcp\.twice/);
    });
  }
}

both('the first rules can be added by reload in a JSON profile', async (t, args) => {
  const mcpServers = { local: server() };
  const gateway = await t.gateway({ mcpServers }, { args, file: 'mcp.json' });
  const client = await t.http(gateway);
  await runs(client);
  const rules = { one: { on: 'mcp.request', if: tool('a'), decision: 'block' } };
  assert.match(reloaded(gateway, JSON.stringify({ mcpServers, security: { rules: { mcp: rules } } })), /policy: 1 rule added, in force/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
});

both('the first rules can be added by reload in the corporation\'s profile', async (t, args) => {
  const corp = t.path('corp.toml');
  writeFileSync(corp, '[limits]\ngrace_ms = 500\n');
  const gateway = await t.gateway(servers(), { args, env: { BULKHEAD_CORP_PROFILE: corp } });
  const client = await t.http(gateway);
  await runs(client);
  writeFileSync(corp, rule('corp', 'a'));
  const done = reload(gateway);
  assert.equal(done.code, 0, show(done));
  assert.match(done.out, /policy: 1 rule added, in force/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.corp/);
});

both('the first rules can be added by reload of a gateway on standard input and output', async (t, args) => {
  const gateway = new Gateway(t.dir, servers(), { args });
  const client = await t.spawn(...gateway.stdioCommand());
  await until('the server is ready', async () => (await call(client)).result);
  assert.match(reloaded(gateway, servers() + rule('one', 'a')), /policy: 1 rule added, in force/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
});

both('the first rules are in force after SIGHUP and after a connector API request', async (t, args) => {
  const gateway = await t.gateway(servers(), { args });
  const client = await t.http(gateway);
  await runs(client);
  write(gateway, servers() + rule('one', 'a'));
  process.kill(gateway.pid, 'SIGHUP');
  await until('the rule is in force', async () => /security\.rules\.mcp\.one/.test((await call(client)).error?.message));
  // Any trigger of a reload rereads the files and applies all changes.
  write(gateway, servers() + rule('two', 'b'));
  const { socket } = await statusOf(gateway);
  const added = await new Promise((done, failed) => {
    const req = request({ socketPath: socket, method: 'POST', path: '/mcp/connectors', headers: { 'content-type': 'application/json' } }, (res) => {
      res.resume();
      res.on('end', () => done(res.statusCode));
    });
    req.on('error', failed);
    req.end(JSON.stringify({ id: 'more', ...fake('--tool', 'c') }));
  });
  assert.equal(added, 200);
  await blocked(client, 'local__b', /security\.rules\.mcp\.two/);
  await runs(client);
});

test('a restarted endpoint has the rules of the last reload', async (t) => {
  const gateway = await t.gateway(servers());
  const client = await t.http(gateway);
  await runs(client);
  reloaded(gateway, servers() + rule('one', 'a'));
  const endpoint = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
  const { pid } = await endpoint();
  process.kill(pid, 'SIGKILL');
  await until('the endpoint is restarted', async () => {
    const one = await endpoint();
    return one.state === 'running' && one.pid !== pid;
  });
  const fresh = await t.http(gateway);
  await until('the server is ready', async () => (await call(fresh, 'local__b')).result);
  await blocked(fresh, 'local__a', /security\.rules\.mcp\.one/);
});

both('a reload with an invalid rule keeps the previous rules and reports it', async (t, args) => {
  const gateway = await t.gateway(servers(), { args });
  const client = await t.http(gateway);
  const broken = rule('broken', 'a').replace('tool_name', 'tol_name');
  assert.match(reloaded(gateway, servers() + broken, 1), /nothing was changed[^]*security\.rules\.mcp\.broken/);
  await runs(client);
  reloaded(gateway, servers() + rule('one', 'a'));
  assert.match(reloaded(gateway, servers() + broken, 1), /nothing was changed/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  await runs(client, 'local__b');
});

// Fault: the policy's process exits because it rejects new rules, so the old rules are lost, and
// the reload reports success.
test('in a private compartment, rules can be added and removed, and invalid rules are rejected', async (t) => {
  const gateway = await t.gateway(servers() + own);
  const client = await t.http(gateway);
  await until('the policy is ready', async () => (await call(client)).result);
  assert.match(reloaded(gateway, servers() + own + rule('one', 'a')), /policy: 1 rule added, in force/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  await runs(client, 'local__b');
  const out = reloaded(gateway, servers() + own + rule('broken', 'a').replace('tool_name', 'tol_name'), 1);
  assert.match(out, /nothing was changed[^]*security\.rules\.mcp\.broken/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  await runs(client, 'local__b');
  assert.match(reloaded(gateway, servers() + own), /policy: 1 rule removed, in force/);
  await runs(client);
});

both('a new configuration of policy-lists is in force', async (t, args) => {
  const lists = (keys) => `${servers()}[policies.default]\nplugin = "policy-lists"\n${keys}\n`;
  const gateway = await t.gateway(lists(''), { args });
  const client = await t.http(gateway);
  await runs(client);
  assert.match(reloaded(gateway, lists('tool_permissions = { local__a = "block" }')), /policy: policies\.default: configuration changed, in force/);
  await blocked(client, 'local__a', /tool_permissions\.local__a/);
  assert.match(reloaded(gateway, lists('blocked_servers = ["local"]')), /policy: policies\.default: configuration changed, in force/);
  await blocked(client, 'local__b', /blocked_servers/);
});

// Fault: the exit code is 0 and the output "reloaded", although a restart is required and the old
// policy still decides.
both('a policy that cannot be replaced causes exit code 1, or 4 if other changes were applied', async (t, args) => {
  const gateway = await t.gateway(servers() + rule('one', 'a'), { args });
  const client = await t.http(gateway);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  const lists = '[policies.default]\nplugin = "policy-lists"\n';
  const alone = reloaded(gateway, servers() + lists, 1);
  assert.match(alone, /nothing was changed/);
  assert.match(alone, /policies\.default: needs a restart; until then, "policy-rules" stays in force instead of "policy-lists"/);
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  const beside = reloaded(gateway, `${servers()}[limits]\ncall_timeout_ms = 50000\n${lists}`, 4);
  assert.match(beside, /reloaded in part/);
  assert.match(beside, /settings: limits\.call_timeout_ms/);
  assert.match(beside, /policies\.default: needs a restart/);
  const added = reloaded(gateway, servers() + '[policies.default]\nplugin = "policy-rules"\n[policies.more]\nplugin = "policy-lists"\nrules = false\n' + rule('one', 'b'), 4);
  assert.match(added, /policy: 1 rule changed, in force/);
  assert.match(added, /policies\.more: needs a restart; it is not used until then/);
  await blocked(client, 'local__b', /security\.rules\.mcp\.one/);
  const [answer] = JSON.parse(reload(gateway, '--json').out).gateways;
  assert.deepEqual([answer.success, answer.applied, answer.reloaded], [false, 'none', 0], show(answer));
  assert.equal(answer.policy.rules, 1);
});

both('a policy that is removed, moved or reordered is reported', async (t, args) => {
  const [one, two] = ['one', 'two'].map((folder) => {
    mkdirSync(t.path(folder), { recursive: true });
    for (const end of ['so', 'plugin.toml']) copyFileSync(`${testPolicy}.${end}`, join(t.path(folder), `test-policy.${end}`));
    return join(t.path(folder), 'test-policy.so');
  });
  const use = (id, path) => `[policies.${id}]\nplugin = ${quoted(path)}\nrules = false\n`;
  const gateway = await t.gateway(servers() + use('x', one) + use('y', one), { args });
  const client = await t.http(gateway);
  await until('the policies are ready', async () => (await call(client, 'local__a', { judge: 'allow' })).result);
  assert.match(reloaded(gateway, servers() + use('x', two) + use('y', one), 1), /policies\.x: needs a restart; until then, ".*one\/test-policy\.so" stays in force instead of ".*two\/test-policy\.so"/);
  assert.match(reloaded(gateway, servers() + use('x', one), 1), /policies\.y: needs a restart; it stays in force until then/);
  assert.match(reloaded(gateway, servers() + use('y', one) + use('x', one), 1), /policies: order changed: needs a restart/);
  assert.equal(reload(gateway).code, 1);
  reloaded(gateway, servers() + use('x', one) + use('y', one));
});

// Fault: a change is reported as in force, or a restarted endpoint does not use the reported
// configuration.
both('a policy in the endpoint that rejects a new configuration at run time keeps the old one and is reported', async (t, args) => {
  const use = (keys) => `[policies.default]\nplugin = "policy-rules"\n[policies.x]\nplugin = ${quoted(`${testPolicy}.so`)}\ncompartment = "endpoint"\nrules = false\n${keys}\n`;
  const gateway = await t.gateway(servers() + use(''), { args });
  const client = await t.http(gateway);
  const allowed = () => client.tool('local__a', { judge: 'allow' });
  await allowed();
  const { digest } = (await statusOf(gateway)).policy;
  assert.match(reloaded(gateway, servers() + use('lists = "filter"'), 1), /nothing was changed[^]*policies\.x: needs a restart; the old configuration stays in force until then/);
  assert.deepEqual([(await statusOf(gateway)).policy.generation, (await statusOf(gateway)).policy.digest], [1, digest]);
  // New rules of another policy take effect in the same reload.
  const out = reloaded(gateway, servers() + use('lists = "filter"') + rule('one', 'b'), 4);
  assert.match(out, /policy: 1 rule added, in force \(now 1 rule\)/);
  assert.match(out, /policies\.x: needs a restart/);
  assert.doesNotMatch(out, /policies\.x: configuration changed/);
  await blocked(client, 'local__b', /security\.rules\.mcp\.one/);
  await allowed();
  const now = (await statusOf(gateway)).policy;
  assert.equal(now.rules, 1);
  if (args.length > 0) return;
  const endpoint = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
  const { pid } = await endpoint();
  process.kill(pid, 'SIGKILL');
  await until('the endpoint is restarted with the same policies', async () => {
    const one = await endpoint();
    return one.state === 'running' && one.pid !== pid && (await statusOf(gateway)).policy.digest === now.digest;
  });
  assert.match(reload(gateway).out, /policies\.x: needs a restart/);
});

// Fault: if the status of the rejection is not BH_E_INVALID, the other processes keep the rejected
// profile, and a restarted endpoint uses it.
const statuses = { BH_E_INVALID: -1, BH_E_UNSUPPORTED: -2, BH_E_UNAVAILABLE: -3, BH_E_LIMIT: -6, BH_E_DENIED: -7, BH_E_IO: -9, BH_PENDING: 1 };
both('a policy that rejects a reload with any status leaves all processes with the old profile', async (t, args) => {
  const held = t.path('held.so');
  copyFileSync(join(build, 'core/plugin/testing_plugins/plugins/held-one.so'), held);
  writeFileSync(t.path('held.plugin.toml'), 'id = "held"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n', { mode: 0o644 });
  const def = fake('--tool', 'a', '--tool', 'b', '--tool', 'c', '--tool', 'd');
  const more = fake('--tool', 'a', '--tool', 'b', '--tool', 'c', '--tool', 'd', '--tool', 'e');
  const profile = ({ server: local = def, ruled = 'b', listed = 'c', say = 'old', keys = '' } = {}) => servers(local) + rule('one', ruled) + `[policies.default]
plugin = "policy-rules"
[policies.lists]
plugin = "policy-lists"
compartment = "own"
rules = false
tool_permissions = { local__${listed} = "block" }
[policies.x]
plugin = ${quoted(join(build, 'tests/judges/refusing-policy.so'))}
compartment = "endpoint"
rules = false
${keys}
[tools.mine]
plugin = ${quoted(held)}
say = "${say}"
`;
  const gateway = await t.gateway(profile(), { args });
  const client = await t.http(gateway);
  const said = async (to) => (await to.tool('mine__which')).content[0].text;
  await until('all are listed', async () => (await client.toolNames()).includes('mine__which') && (await client.toolNames()).includes('local__d'), 30_000);
  const policy = async () => (({ generation, digest }) => ({ generation, digest }))((await statusOf(gateway)).policy);
  const before = await policy();
  const isOld = async (to) => {
    await until('the tools plugin has the old configuration', async () => await said(to).catch(() => '') === 'one old', 20_000);
    await runs(to, 'local__a');
    await runs(to, 'local__d');
    await blocked(to, 'local__b', /security\.rules\.mcp\.one/);
    await blocked(to, 'local__c', /tool_permissions\.local__c/);
    assert.deepEqual((await to.toolNames()).sort(), ['local__a', 'local__d', ...['hold', 'hold_large', 'hold_secret', 'sleep', 'which'].map((name) => `mine__${name}`)]);
    assert.deepEqual(await policy(), before);
  };
  await isOld(client);
  for (const [name, status] of Object.entries(statuses)) {
    const out = reloaded(gateway, profile({ server: more, ruled: 'a', listed: 'd', say: 'new', keys: `status = ${status}` }), 1);
    assert.match(out, /nothing was changed[^]*policies\.x: the test refuses this configuration/, name);
    await isOld(client);
  }
  if (args.length === 0) {
    for (const name of ['policy.lists', 'mine', 'endpoint']) {
      const find = async () => (await statusOf(gateway)).compartments.find((one) => one.name === name && one.state === 'running');
      const { pid } = await find();
      process.kill(pid, 'SIGKILL');
      await until(`${name} is restarted`, async () => ((await find())?.pid ?? pid) !== pid, 20_000);
      await isOld(await t.http(gateway));
    }
  }
  // Without the status, the same profile is applied.
  const out = reloaded(gateway, profile({ server: more, ruled: 'a', listed: 'd', say: 'new' }));
  assert.match(out, /policy: .*in force/);
  const last = await t.http(gateway);
  await until('the tools plugin has the new configuration', async () => await said(last).catch(() => '') === 'one new', 20_000);
  await until('the new tool is listed', async () => (await last.toolNames()).includes('local__e'), 20_000);
  await blocked(last, 'local__a', /security\.rules\.mcp\.one/);
  await blocked(last, 'local__d', /tool_permissions\.local__d/);
  await runs(last, 'local__b');
  await runs(last, 'local__c');
}, { timeout: 120_000 });

// Fault: rules that no policy in the profile evaluates are reported as in force.
both('rules that are added beside a policy that evaluates none cause exit code 1, and the cause is named', async (t, args) => {
  const foreign = '[policies.default]\nplugin = "policy-allow"\n';
  const gateway = await t.gateway(servers() + foreign, { args });
  const client = await t.http(gateway);
  await runs(client);
  for (const text of [rule('one', 'a'), '[security.servers.local]\nallowed_tools = ["b"]\n']) {
    const out = reloaded(gateway, servers() + foreign + text, 1);
    assert.match(out, /nothing was changed/);
    assert.match(out, /gateway\.toml:\d+: policies\.default: the profile has rules, but this plugin does not evaluate them: use "policy-rules" instead.*\[plugin_config\]/);
    assert.doesNotMatch(out, /in force/);
    await runs(client);
    const { generation, rules } = (await statusOf(gateway)).policy;
    assert.deepEqual([generation, rules], [1, 0]);
  }
  reloaded(gateway, servers() + foreign);
});

// A second gateway of the same user, which `bulkhead reload` and `policy check` find as well. If
// `profile` is undefined, it has the profile file of the first one.
const beside = (t, first, profile, args) =>
  t.gateway(profile, { args, file: profile === undefined ? `../${basename(first.dir)}/gateway.toml` : undefined, env: { XDG_RUNTIME_DIR: first.dir } });

both('reload returns 4 if one gateway applies its changes and another does not', async (t, args) => {
  const first = await t.gateway(servers(), { args });
  const second = await beside(t, first, servers(), args);
  const [one, two] = [await t.http(first), await t.http(second)];
  for (const client of [one, two]) await runs(client);
  const broken = rule('broken', 'a').replace('tool_name', 'tol_name');
  const reloadBoth = (texts, code) => {
    [first, second].forEach((gateway, i) => write(gateway, servers() + texts[i]));
    const done = reload(first);
    assert.equal(done.code, code, show(done));
    return done.out;
  };
  const out = reloadBoth([rule('one', 'a'), broken], 4);
  assert.match(out, /policy: 1 rule added, in force \(now 1 rule\)/);
  assert.match(out, /nothing was changed[^]*security\.rules\.mcp\.broken/);
  await blocked(one, 'local__a', /security\.rules\.mcp\.one/);
  await runs(two);
  // It does not matter which of them is asked first.
  reloadBoth([broken, rule('two', 'a')], 4);
  await blocked(one, 'local__a', /security\.rules\.mcp\.one/);
  await blocked(two, 'local__a', /security\.rules\.mcp\.two/);
  reloadBoth([broken, broken], 1);
  reloadBoth(['', ''], 0);
  for (const client of [one, two]) await runs(client);
});

both('policy check and explain compare with each running gateway of this profile', async (t, args) => {
  const first = await t.gateway(servers() + rule('one', 'a'), { args });
  const second = await beside(t, first, undefined, args);
  const foreign = await beside(t, first, servers(), args);
  assert.equal(second.config, first.config);
  const policy = (input, ...words) => {
    const done = spawnSync(program, ['policy', ...words], { env: first.env(), cwd: first.dir, input, encoding: 'utf8', timeout: 20_000 });
    assert.equal(done.status, 0, show(done));
    return done.stdout;
  };
  const explain = (...words) => policy(JSON.stringify({ server: 'local', name: 'a' }), 'explain', '-', '--config', first.config, ...words);
  const expect = (same) => {
    for (const out of [policy('', 'check', 'gateway.toml'), explain()]) {
      for (const [gateway, is] of [[first, same[0]], [second, same[1]]]) {
        const text = is ? 'has these rules in force' : 'has DIFFERENT rules in force: 1 rule, while the files have 2 rules';
        assert.ok(out.includes(`the running gateway (pid ${gateway.pid}) ${text}`), out);
      }
      assert.ok(!out.includes(`(pid ${foreign.pid})`), out);
    }
    const found = JSON.parse(explain('--json')).gateways.map((one) => [one.pid, one.same]);
    assert.deepEqual(Object.fromEntries(found), { [first.pid]: same[0], [second.pid]: same[1] });
  };
  expect([true, true]);
  write(first, servers() + rule('one', 'a') + rule('two', 'b'));
  expect([false, false]);
  // Only one of them rereads the file.
  process.kill(second.pid, 'SIGHUP');
  await until('the second one has both rules', async () => (await statusOf(second)).policy.rules === 2);
  expect([false, true]);
  assert.equal(reload(first).code, 0);
  expect([true, true]);
});

const checked = (gateway, env = {}) => {
  const done = spawnSync(program, ['policy', 'check', 'gateway.toml'], { env: { ...gateway.env(), ...env }, cwd: gateway.dir, encoding: 'utf8', timeout: 20_000 });
  assert.equal(done.status, 0, show(done));
  return done.stdout;
};

// Fault: the digest does not cover values under names like "get_token", so that another rule looks as
// if it were in force.
both('reload and policy check report another decision for a tool whose name contains "token"', async (t, args) => {
  const lists = (decision) => `${servers()}[policies.default]\nplugin = "policy-lists"\ntool_permissions = { local__get_token = "${decision}", local__x_secret = "allow" }\n`;
  const gateway = await t.gateway(lists('allow'), { args });
  assert.match(checked(gateway), /has these rules in force/);
  const before = (await statusOf(gateway)).policy;
  write(gateway, lists('block'));
  assert.match(checked(gateway), /has DIFFERENT rules in force/);
  const done = reload(gateway);
  assert.equal(done.code, 0, show(done));
  assert.match(done.out, /policies\.default: configuration changed, in force/);
  const after = (await statusOf(gateway)).policy;
  assert.equal(after.generation, before.generation + 1);
  assert.notEqual(after.digest, before.digest);
  assert.match(checked(gateway), /has these rules in force/);
});

both('policy check does not compare policies that use a variable that is unset', async (t, args) => {
  const policy = '[policies.default]\nplugin = "policy-rules"\n[policies.pdp]\nplugin = "policy-http"\nrules = false\nurl = "http://127.0.0.1:9/"\nheaders = { Authorization = "Bearer ${env:PDP_TOKEN}" }\n';
  const gateway = await t.gateway(servers() + policy, { args, env: { PDP_TOKEN: 'one' } });
  assert.match(checked(gateway, { PDP_TOKEN: 'one' }), /has these rules in force/);
  assert.match(checked(gateway, { PDP_TOKEN: 'two' }), /has DIFFERENT rules in force/);
  const unset = checked(gateway, { PDP_TOKEN: undefined });
  assert.match(unset, /cannot be compared with the files: they use an environment variable that is not set here/);
  assert.doesNotMatch(unset, /DIFFERENT/);
  write(gateway, servers() + policy + rule('one', 'a'));
  assert.match(checked(gateway, { PDP_TOKEN: undefined }), /has DIFFERENT rules in force: 0 rules, while the files have 1 rule/);
});

// Fault: check and explain assume that the rules in the files are in force.
both('policy check and explain report a running gateway of this profile with other rules', async (t, args) => {
  const gateway = await t.gateway(servers(), { args });
  const client = await t.http(gateway);
  await runs(client);
  const policy = (input, ...words) => {
    const done = spawnSync(program, ['policy', ...words], { env: gateway.env(), cwd: gateway.dir, input, encoding: 'utf8', timeout: 20_000 });
    assert.equal(done.status, 0, show(done));
    return done.stdout;
  };
  const asked = JSON.stringify({ server: 'local', name: 'a' });
  const check = (file = 'gateway.toml') => policy('', 'check', file);
  const explain = (...words) => policy(asked, 'explain', '-', '--config', gateway.config, ...words);
  const same = new RegExp(`the running gateway \\(pid ${gateway.pid}\\) has these rules in force`);
  const other = new RegExp(`the running gateway \\(pid ${gateway.pid}\\) has DIFFERENT rules in force: 0 rules, while the files have 1 rule\\. Run .bulkhead reload. to apply the rules in the files`);
  assert.match(check(), same);
  write(gateway, servers() + rule('one', 'a'));
  assert.match(check(), other);
  assert.match(explain(), /request: block[^]*DIFFERENT rules in force/);
  const [found] = JSON.parse(explain('--json')).gateways;
  assert.deepEqual([found.pid, found.generation, found.rules, found.same], [gateway.pid, 1, 0, false]);
  await runs(client);
  assert.equal(reload(gateway).code, 0);
  assert.match(check(), same);
  assert.equal(JSON.parse(explain('--json')).gateways[0].same, true);
  // A gateway with another profile is not compared.
  writeFileSync(join(gateway.dir, 'other.toml'), servers());
  assert.doesNotMatch(check('other.toml'), /running gateway/);
});

// Fault: records do not show which rules decided a call.
both('each generation of rules is recorded: at the start, and at each reload that changes them', async (t, args) => {
  const book = '[telemetry.records]\nplugin = "telemetry-sqlite"\nflush_ms = 20\n';
  const gateway = await t.gateway(servers() + book, { args });
  const client = await t.http(gateway);
  await runs(client);
  reloaded(gateway, servers() + book + rule('one', 'a'));
  await blocked(client, 'local__a', /security\.rules\.mcp\.one/);
  reloaded(gateway, servers() + book + rule('one', 'a')); // changes nothing
  reloaded(gateway, servers() + book + rule('broken', 'a').replace('tool_name', 'tol_name'), 1);
  reloaded(gateway, servers() + book + rule('one', 'b') + rule('two', 'c'));
  const query = `SELECT 'policy' AS what, detail AS text FROM audit_marks WHERE kind = 'policy' UNION ALL
    SELECT decision, tool_name FROM mcp_calls WHERE method = 'tools/call'`;
  const inspect = (sql) => {
    const done = spawnSync(program, ['inspect', '--json', sql], { env: gateway.env(), encoding: 'utf8', timeout: 20_000 });
    assert.equal(done.status, 0, show(done));
    return JSON.parse(done.stdout).rows;
  };
  await until('all calls are recorded', () => inspect(query).length === 5);
  const marks = inspect("SELECT detail FROM audit_marks WHERE kind = 'policy' ORDER BY id").map(([text]) => text);
  assert.match(marks[0], /^generation 1: 0 rules, digest [0-9a-f]{32}, by default \(policy-rules\)$/);
  assert.match(marks[1], /^generation 2: 1 rule, digest [0-9a-f]{32}, by default \(policy-rules\); 1 rule added$/);
  assert.match(marks[2], /^generation 3: 2 rules, digest [0-9a-f]{32}, by default \(policy-rules\); 1 rule added, 1 rule changed$/);
  // The audit chain contains them in the same order.
  assert.deepEqual(inspect(`SELECT decision FROM (SELECT seq, 'policy' AS decision FROM audit_marks WHERE kind = 'policy'
    UNION ALL SELECT seq, decision FROM mcp_calls WHERE method = 'tools/call') ORDER BY seq`).map(([text]) => text),
  ['policy', 'allowed', 'policy', 'denied', 'policy']);
  assert.equal((await statusOf(gateway)).policy.generation, 3);
  assert.ok(marks[2].includes((await statusOf(gateway)).policy.digest));
});

await run();
