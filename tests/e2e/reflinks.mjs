// Tests snapshots on file systems with reflink copies (FICLONE). A stored copy needs no additional
// space until the file or the copy changes.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statfsSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { Skip, assert, run, test } from './lib.mjs';

const MIB = 1 << 20;
const found = (program) => ['/usr/sbin', '/sbin', '/usr/bin'].map((dir) => `${dir}/${program}`).find(existsSync);

// Creates a file system of this type in a file, and mounts it until the test finishes.
function mounted(t, type) {
  if (process.getuid() !== 0) throw new Skip(`reflinks-${type}: only root can mount a file system`);
  if (!new RegExp(`\\t${type}\\n`).test(readFileSync('/proc/filesystems', 'utf8'))) throw new Skip(`reflinks-${type}: this kernel has no ${type}`);
  const make = found(`mkfs.${type}`);
  if (make === undefined) throw new Skip(`reflinks-${type}: there is no mkfs.${type}`);
  const image = t.path('image');
  const at = t.path('fs');
  writeFileSync(image, '');
  truncateSync(image, 512 * MIB);
  mkdirSync(at);
  execFileSync(make, ['-q', image]);
  try {
    execFileSync('mount', ['-o', 'loop', image, at], { stdio: 'pipe' });
  } catch (error) {
    throw new Skip(`reflinks-${type}: mount: ${error.stderr}`);
  }
  t.defer(() => execFileSync('umount', ['-l', at]));
  return at;
}
function used(at) {
  execFileSync('sync', ['-f', at]);
  const { bsize, blocks, bfree } = statfsSync(at);
  return (blocks - bfree) * bsize;
}

for (const type of ['xfs', 'btrfs']) {
  test(`stored copies share their blocks with the files (${type})`, async (t) => {
    const at = mounted(t, type);
    mkdirSync(`${at}/files`);
    mkdirSync(`${at}/kept`);
    const large = randomBytes(64 * MIB);
    writeFileSync(`${at}/files/large`, large);
    writeFileSync(`${at}/files/small`, 'one');
    const gateway = await t.gateway({ tools: { files: { plugin: 'builtin-files', path: `${at}/files`, write: true, snapshots: { path: `${at}/kept`, interval_s: 0 } } } });
    const client = await t.http(gateway);
    const json = async (tool, args = {}) => {
      const result = await client.tool(`files__${tool}`, args);
      assert.ok(!result.isError, JSON.stringify(result));
      return JSON.parse(result.content[0].text);
    };
    const before = used(at);
    await json('snapshots_create', { name: 'one' });
    assert.ok(used(at) - before < 8 * MIB, `the snapshot of 64 MiB takes ${used(at) - before} bytes`);
    // The live file is changed in place. The stored copy must not change.
    const fd = openSync(`${at}/files/large`, 'r+');
    writeSync(fd, Buffer.from('changed'), 0, 7, 32 * MIB);
    closeSync(fd);
    writeFileSync(`${at}/files/small`, 'two');
    assert.deepEqual((await json('snapshots_changes', { format: 'json' })).map((c) => c.path).sort(), ['large', 'small']);
    const changed = used(at);
    assert.equal((await json('snapshots_revert', { path: '.', checkpoint: 'cp-10' })).action, 'restored');
    assert.ok(readFileSync(`${at}/files/large`).equals(large));
    assert.equal(readFileSync(`${at}/files/small`, 'utf8'), 'one');
    assert.ok(used(at) - changed < 8 * MIB, `the revert of 64 MiB takes ${used(at) - changed} bytes`);
    assert.equal(statSync(`${at}/files/large`).nlink, 1);
  }, { timeout: 60_000 });
}

await run();
