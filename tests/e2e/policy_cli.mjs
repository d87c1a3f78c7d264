// Tests `bulkhead policy check`, `explain` and `test`, which evaluate rules without a gateway.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assert, fake, program, run, runProgram, show, test, until } from './lib.mjs';

const rule = (name, keys) =>
  `[security.rules.mcp.${name}]\n${Object.entries({ on: 'mcp.request', if: 'true', ...keys })
    .map(([key, value]) => `${key} = '''${value}'''`)
    .join('\n')}\n`;
const rulesFile = rule('r', { if: "mcp.request.tool_name == 'a' && has(mcp.request.arguments.n) && mcp.request.arguments.n > 3", decision: 'block', reason: 'too much' })
  + rule('mask', { on: 'mcp.response', decision: 'rewrite', rewrite_target: 'response.text =~ "secret"', rewrite_value: '***' });
const cli = (t, words, rules, input) =>
  runProgram(t, ['policy', ...words, '--config', '{config}'], { profile: rules, file: 'gateway.toml', input });

test('policy check accepts valid rules and reports all errors of invalid rules', (t) => {
  const good = cli(t, ['check'], rulesFile);
  assert.equal(good.code, 0, show(good));
  assert.match(good.stdout, /gateway\.toml: policy-rules accepted the rules/);
  const named = runProgram(t, ['policy', 'check', '{config}'], { profile: rulesFile, file: 'gateway.toml' });
  assert.equal(named.code, 0, show(named));
  assert.match(named.stdout, /gateway\.toml: policy-rules accepted the rules/);
  const both = runProgram(t, ['policy', 'check', '{config}', '--config', '{config}'], { profile: rulesFile, file: 'gateway.toml' });
  assert.equal(both.code, 2, show(both));
  const none = runProgram(t, ['policy', 'check', '/nowhere/gateway.toml'], {});
  assert.equal(none.code, 1, show(none));
  assert.match(none.stderr, /\/nowhere\/gateway\.toml/);
  for (const command of ['explain', 'test']) {
    const missing = runProgram(t, ['policy', command, '/nowhere/file.json'], {});
    assert.deepEqual([missing.code, missing.stderr], [1, 'bulkhead: cannot read /nowhere/file.json: No such file or directory\n'], command);
  }
  const bad = cli(t, ['check'], rule('x', { if: 'mcp.nothing' , decision: 'block' }) + rule('y', { decision: 'deny' }));
  assert.equal(bad.code, 1, show(bad));
  assert.match(bad.stderr, /gateway\.toml:3: security\.rules\.mcp\.x\.if: 1:\d+: /);
  assert.match(bad.stderr, /gateway\.toml:8: security\.rules\.mcp\.y\.decision/);
});

test('policy check warns about a rule that reads a member without has(), with its line and the missing test', (t) => {
  const warnings = (rules) => {
    const checked = cli(t, ['check'], rules);
    assert.equal(checked.code, 0, show(checked));
    return checked.stdout.split('\n').filter((line) => line.startsWith('warning: '));
  };
  assert.deepEqual(warnings(rulesFile), []);
  const found = warnings(rule('fine', { decision: 'block', if: "has(mcp.request.arguments.a) && mcp.request.arguments.a == 'x'" })
    + rule('args', { decision: 'block', if: "mcp.request.arguments.a == 'x'" })
    + rule('meta', { decision: 'ask', if: "mcp.request.meta.vendor.name == 'x'" })
    + rule('extra', { decision: 'block', if: "mcp.request.extra['x-y'] == 1" })
    + rule('answer', { on: 'mcp.response', decision: 'block', if: "has(mcp.response.structured) && mcp.response.structured.code == 1" })
    + rule('client', { decision: 'block', if: "client.claimed_name == 'x'" }));
  assert.deepEqual(found.map((line) => /gateway\.toml:(\d+): rule security\.rules\.mcp\.(\w+) reads (\S+) without has\(\).* Add `(.*)`$/.exec(line)?.slice(1)), [
    ['5', 'args', 'mcp.request.arguments.a', 'has(mcp.request.arguments.a)'],
    ['13', 'extra', 'mcp.request.extra["x-y"]', '"x-y" in mcp.request.extra'],
    ['9', 'meta', 'mcp.request.meta.vendor.name', 'has(mcp.request.meta.vendor) && has(mcp.request.meta.vendor.name)'],
    ['17', 'answer', 'mcp.response.structured.code', 'has(mcp.response.structured.code)'],
  ], found.join('\n'));
});

test('policy check and doctor warn about names that no server and no tool has', async (t) => {
  const profile = {
    mcpServers: { github: fake('--tool', 'list_issues', '--tool', 'get_issue'), memory: { ...fake('--tool', 'delete'), allowTools: ['delete', 'remove'] } },
    security: {
      servers: { githb: { allowed_tools: ['list_issues'] }, github: { allowed_tools: ['list_issues', 'get_isue'] } },
      rules: { mcp: {
        right: { on: 'mcp.request', if: "mcp.request.server_name == 'memory' && mcp.request.tool_name == 'delete'", decision: 'block' },
        listed: { on: 'mcp.request', if: "mcp.request.tool_name == 'memory__delete'", decision: 'block' },
        absent: { on: 'mcp.request', if: "mcp.request.server_name in ['memory', 'mem']", decision: 'block' },
      } },
    },
  };
  const gateway = await t.gateway(profile);
  await until('the lists are stored', () => {
    const folder = join(gateway.dir, 'state/bulkhead/lists');
    return existsSync(folder) && readdirSync(folder).filter((name) => name.startsWith('github') || name.startsWith('memory')).length === 2;
  });
  const command = (...words) => spawnSync(program, [...words, '--config', gateway.config], { env: gateway.env(), cwd: gateway.dir, encoding: 'utf8' });
  const expected = [
    'allowTools of memory: server "memory" lists no tool "remove". This entry allows nothing, and tools that the list does not name are blocked',
    'security.rules.mcp.absent.if: no server is named "mem"; did you mean "memory"?',
    'security.rules.mcp.listed.if: "memory__delete" is the name that clients see; rules match the tool\'s name on the server, "delete"',
    'security.servers.githb: no server is named "githb"; did you mean "github"?',
    'security.servers.github.allowed_tools: server "github" lists no tool "get_isue"; did you mean "get_issue"? This entry allows nothing, and tools that the list does not name are blocked',
  ];
  const found = (lines) => lines.map((line) => /gateway\.json(?::\d+)?: (.*)/.exec(line)?.[1]).filter((line) => expected.includes(line)).sort();
  const checked = command('policy', 'check');
  assert.equal(checked.status, 0, show(checked));
  const warnings = checked.stdout.split('\n').filter((line) => line.startsWith('warning: '));
  assert.deepEqual(found(warnings), expected, checked.stdout);
  assert.equal(warnings.length, expected.length);
  const doctor = JSON.parse(command('doctor', '--json').stdout).filter((one) => one.result === 'warn');
  assert.deepEqual(found(doctor.map((one) => one.text)), expected);
  // The gateway reports the names itself. At its first start, no tool list is stored.
  const servers = expected.filter((line) => line.includes('no server is named'));
  assert.deepEqual(found(gateway.stderr().split('\n')).filter((line) => servers.includes(line)), servers, gateway.stderr());
  const reload = spawnSync(program, ['reload'], { env: gateway.env(), encoding: 'utf8' });
  assert.equal(reload.status, 0, show(reload));
  const reported = reload.stdout.split('\n').filter((line) => line.startsWith('  note: '));
  assert.deepEqual(found(reported), expected, show(reload));
});

test('policy explain shows the decision and each evaluated rule', (t) => {
  const described = JSON.stringify({ server: 's', name: 'a', arguments: { n: 4 }, result: { content: [{ text: 'a secret' }] } });
  const said = cli(t, ['explain', '-'], rulesFile, described);
  assert.equal(said.code, 0, show(said));
  assert.match(said.stdout, /^request: block by security\.rules\.mcp\.r: too much$/m);
  assert.match(said.stdout, /security\.rules\.mcp\.r +block +matches +.*gateway\.toml:1/);
  assert.match(said.stdout, /becomes .*a \*\*\*/);
  const json = cli(t, ['explain', '-', '--json'], rulesFile, described);
  assert.equal(JSON.parse(json.stdout).response.decision, 'rewrite');
  const wrong = cli(t, ['explain', '-'], rulesFile, '{"sever":"s"}');
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /did you mean "server"/);
  const poll = cli(t, ['explain', '-'], rulesFile, '{"server":"s","name":"a","arguments":{"n":4},"method":"tasks/get"}');
  assert.match(poll.stdout, /^request: allow: policies do not evaluate requests with this method$/m, show(poll));
  const lists = cli(t, ['explain', '-'], '[policies.default]\nplugin = "policy-lists"\nblocked_servers = ["s"]\n', described);
  assert.match(lists.stdout, /^request: block by blocked_servers\.s$/m, show(lists));
  const none = cli(t, ['explain', '-'], '[policies.default]\nplugin = "policy-allow"\n', described);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /policy-allow" does not support explanations/);
});

test('policy explain and test resolve the names that clients see', (t) => {
  const profile = '[mcpServers.memory]\ncommand = "nothing"\n'
    + rule('keep', { if: "mcp.request.server_name == 'memory' && mcp.request.tool_name == 'delete_entities'", decision: 'block' });
  const explained = (call, rules = profile) => cli(t, ['explain', '-', '--json'], rules, JSON.stringify(call));
  for (const call of [{ name: 'memory__delete_entities' }, { server: 'memory', name: 'memory__delete_entities' }, { server: 'memory', name: 'delete_entities' }]) {
    const said = explained(call);
    assert.equal(said.code, 0, show(said));
    const { request, notes } = JSON.parse(said.stdout);
    assert.deepEqual([request.decision, request.rule], ['block', 'security.rules.mcp.keep'], show(call));
    assert.equal(notes?.length ?? 0, call.name === 'delete_entities' ? 0 : 1);
  }
  const dashed = explained({ name: 'memory-delete_entities' }, `[naming]\nseparator = "-"\n${profile}`);
  assert.equal(JSON.parse(dashed.stdout).request.decision, 'block', show(dashed));
  const unknown = explained({ server: 'nosuch', name: 'delete_entities' });
  assert.deepEqual(JSON.parse(unknown.stdout).notes, ['the profile has no server "nosuch"']);
  const missing = explained({ name: 'nosuch__delete_entities' });
  assert.equal(missing.code, 1, show(missing));
  assert.match(missing.stderr, /no server in the profile has a tool that clients see as "nosuch__delete_entities"/);
  const text = cli(t, ['explain', '-'], profile, '{"name":"memory__delete_entities"}');
  assert.match(text.stdout, /^note: "memory__delete_entities" is the name that clients see; rules see server "memory", tool "delete_entities"$/m);
  const cases = cli(t, ['test', '-'], profile, '{"call":{"name":"memory__delete_entities"},"expect":"block","rule":"keep"}\n');
  assert.equal(cases.code, 0, show(cases));
});

const several = (lists) => `[policies.rules]
plugin = "policy-rules"

[policies.lists]
plugin = "policy-lists"
rules = false
${lists}

`;

test('with several policies, check loads each, and explain shows each decision and the result', (t) => {
  const both = several('tool_permissions = { s__c = "block" }') + rulesFile +
    rule('cut', { if: "mcp.request.tool_name == 'd'", decision: 'rewrite', rewrite_target: 'arguments =~ "x+"', rewrite_value: '-' });
  const checked = cli(t, ['check'], both);
  assert.equal(checked.code, 0, show(checked));
  assert.match(checked.stdout, /policy-rules accepted the rules\n.*policy-lists accepted the rules/);
  const wrong = cli(t, ['check'], several('tool_permissions = 1') + rulesFile + rule('y', { decision: 'deny' }));
  assert.equal(wrong.code, 1, show(wrong));
  assert.match(wrong.stderr, /security\.rules\.mcp\.y\.decision/);
  assert.match(wrong.stderr, /tool_permissions/);

  const explained = (call) => JSON.parse(cli(t, ['explain', '-', '--json'], both, JSON.stringify({ server: 's', ...call })).stdout);
  const second = explained({ name: 'c' });  // the second policy decides
  assert.deepEqual([second.request.decision, second.request.rule], ['block', 'tool_permissions.s__c']);
  assert.deepEqual(second.policies.map((one) => [one.policy, one.plugin, one.request.decision]),
    [['rules', 'policy-rules', 'allow'], ['lists', 'policy-lists', 'block']]);
  const first = explained({ name: 'a', arguments: { n: 4 } });  // the next policy is not evaluated
  assert.deepEqual([first.request.decision, first.request.rule], ['block', 'security.rules.mcp.r']);
  assert.equal(first.policies[1].not_explained, 'not evaluated');
  const written = explained({ name: 'd', arguments: { n: 1, text: 'axxb' }, result: { content: [{ text: 'a secret' }] } });
  assert.deepEqual([written.request.decision, written.request.rewritten], ['rewrite', { n: 1, text: 'a-b' }]);
  assert.deepEqual([written.response.decision, written.response.rewritten], ['rewrite', { content: [{ text: 'a ***' }] }]);

  const text = cli(t, ['explain', '-'], both, '{"server":"s","name":"c"}');
  assert.equal(text.code, 0, show(text));
  assert.match(text.stdout, /^policy rules \(policy-rules\)\nrequest: allow by security\.rules\.mcp\.default$/m);
  assert.match(text.stdout, /^policy lists \(policy-lists\)\nrequest: block by tool_permissions\.s__c$/m);
  assert.match(text.stdout, /^combined decision\nrequest: block by tool_permissions\.s__c$/m);
  const cases = cli(t, ['test', '-'], both, '{"call":{"server":"s","name":"c"},"expect":"block","rule":"s__c"}\n');
  assert.equal(cases.code, 0, show(cases));
  const unclear = cli(t, ['explain', '-'], both, '{"sever":"s","server":"s"}');
  assert.equal(unclear.code, 1);
  assert.match(unclear.stderr, /did you mean "server"/);
});

test('policy explain names a policy that cannot explain its decision', (t) => {
  const point = `[policies.point]
plugin = "policy-http"
url = "http://127.0.0.1:9/"
rules = false

`;
  const both = `[policies.rules]\nplugin = "policy-rules"\n\n${point}${rulesFile}`;
  const explained = (call) => JSON.parse(cli(t, ['explain', '-', '--json'], both, JSON.stringify({ server: 's', ...call })).stdout);
  const unknown = explained({ name: 'b' });
  assert.equal(unknown.request.decision, 'unknown');
  assert.match(unknown.request.reason, /"point" \(policy-http\) does not support explanations/);
  assert.match(unknown.policies[1].not_explained, /bh\.explain\/1/);
  const blocked = explained({ name: 'a', arguments: { n: 4 } });
  assert.equal(blocked.request.decision, 'block');
});

test('policy test reports passed cases, and failed cases with their line', (t) => {
  const cases = `# cases
{"call":{"server":"s","name":"a","arguments":{"n":4}},"expect":"block","rule":"r"}
{"call":{"server":"s","name":"a","arguments":{"n":3}},"expect":"allow"}

{"call":{"server":"s","name":"b","result":{"content":[]}},"expect_response":"allow"}
`;
  const good = cli(t, ['test', '-'], rulesFile, cases);
  assert.equal(good.code, 0, show(good));
  assert.match(good.stdout, /^3 passed, 0 failed$/m);
  const none = cli(t, ['test', '/dev/null'], rulesFile);
  assert.equal(none.code, 0, show(none));
  assert.match(none.stdout, /^0 passed, 0 failed$/m);
  const unguarded = rulesFile.replace('has(mcp.request.arguments.n) && ', '');
  const bad = cli(t, ['test', '-'], unguarded, `${cases}{"call":{"server":"s","name":"a"},"expect":"allow"}\n{"call":1,"expect":"allow"}\n`);
  assert.equal(bad.code, 1, show(bad));
  assert.match(bad.stdout, /-:6: request: block by security\.mcp\.evaluation_error.*; expected allow/);
  assert.match(bad.stdout, /-:7: a call must be a JSON object/);
  assert.match(bad.stdout, /^3 passed, 2 failed$/m);
});

await run();
