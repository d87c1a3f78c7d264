// bulkhead policy check, explain and test: what rules say, without a gateway.
import { assert, run, runProgram, show, test } from './lib.mjs';

const rule = (name, keys) =>
  `[security.rules.mcp.${name}]\n${Object.entries({ on: 'mcp.request', if: 'true', ...keys })
    .map(([key, value]) => `${key} = '''${value}'''`)
    .join('\n')}\n`;
const rulesFile = rule('r', { if: "mcp.request.tool_name == 'a' && mcp.request.arguments.n > 3", decision: 'block', reason: 'too much' })
  + rule('mask', { on: 'mcp.response', decision: 'rewrite', rewrite_target: 'response.text =~ "secret"', rewrite_value: '***' });
const cli = (t, words, rules, input) =>
  runProgram(t, ['policy', ...words, '--config', '{config}'], { profile: rules, file: 'gateway.toml', input });

test('policy check: rules that are taken, and all mistakes of those that are not', (t) => {
  const good = cli(t, ['check'], rulesFile);
  assert.equal(good.code, 0, show(good));
  assert.match(good.stdout, /gateway\.toml: policy-rules has taken the rules/);
  const named = runProgram(t, ['policy', 'check', '{config}'], { profile: rulesFile, file: 'gateway.toml' });
  assert.equal(named.code, 0, show(named));
  assert.match(named.stdout, /gateway\.toml: policy-rules has taken the rules/);
  const both = runProgram(t, ['policy', 'check', '{config}', '--config', '{config}'], { profile: rulesFile, file: 'gateway.toml' });
  assert.equal(both.code, 2, show(both));
  const none = runProgram(t, ['policy', 'check', '/nowhere/gateway.toml'], {});
  assert.equal(none.code, 1, show(none));
  assert.match(none.stderr, /\/nowhere\/gateway\.toml/);
  const bad = cli(t, ['check'], rule('x', { if: 'mcp.nothing' , decision: 'block' }) + rule('y', { decision: 'deny' }));
  assert.equal(bad.code, 1, show(bad));
  assert.match(bad.stderr, /gateway\.toml:3: security\.rules\.mcp\.x\.if: 1:\d+: /);
  assert.match(bad.stderr, /gateway\.toml:8: security\.rules\.mcp\.y\.decision/);
});

test('policy explain: the decision, and each rule that was looked at', (t) => {
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
  const none = cli(t, ['explain', '-'], '[policies.default]\nplugin = "policy-lists"\n', described);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /policy-lists" cannot explain/);
});

test('policy test: cases that hold, and those that do not with their line', (t) => {
  const cases = `# cases
{"call":{"server":"s","name":"a","arguments":{"n":4}},"expect":"block","rule":"r"}
{"call":{"server":"s","name":"a","arguments":{"n":3}},"expect":"allow"}

{"call":{"server":"s","name":"b","result":{"content":[]}},"expect_response":"allow"}
`;
  const good = cli(t, ['test', '-'], rulesFile, cases);
  assert.equal(good.code, 0, show(good));
  assert.match(good.stdout, /^3 as expected, 0 not$/m);
  const bad = cli(t, ['test', '-'], rulesFile, `${cases}{"call":{"server":"s","name":"a"},"expect":"allow"}\n{"call":1,"expect":"allow"}\n`);
  assert.equal(bad.code, 1, show(bad));
  assert.match(bad.stdout, /-:6: request: block by security\.mcp\.evaluation_error.*; expected allow/);
  assert.match(bad.stdout, /-:7: a call is a JSON object/);
  assert.match(bad.stdout, /^3 as expected, 2 not$/m);
});

await run();
