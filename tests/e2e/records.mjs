// Reads a gateway's session database with the commands of the program.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DatabaseSync } from 'node:sqlite';
import { program } from './gateway.mjs';
import { until } from './harness.mjs';

const execute = promisify(execFile);

export class Records {
  constructor(gateway, state) {
    this.gateway = gateway;
    this.state = state ?? join(gateway.dir, 'state/bulkhead');
    this.folder = join(this.state, 'plugins/records');
  }
  // Resolves with stdout and stderr. If the exit code is not 0, rejects with these and the code.
  execute(...words) {
    return execute(program, words, { env: this.gateway.env(), timeout: 30_000, maxBuffer: 64 << 20 });
  }
  command(...words) {
    return this.execute(...words, ...(words[0] === 'approvals' ? [] : ['--config', this.gateway.config]));
  }
  inspect(...words) {
    return this.command('inspect', ...words);
  }
  verify(...words) {
    return this.command('audit', 'verify', ...words);
  }
  async rows(sql) {
    return JSON.parse((await this.inspect(sql, '--json')).stdout).rows;
  }
  // Waits until ok() accepts the first value of the result.
  until(sql, ok) {
    return until(sql, async () => ok((await this.rows(sql))[0][0]), 30_000);
  }
  files() {
    return readdirSync(this.folder).filter((name) => /^calls-.*\.db$/.test(name)).sort().map((name) => join(this.folder, name));
  }
}

// Changes the file as a user with write access could, who first removes the triggers.
export async function tamper(file, sql) {
  const db = new DatabaseSync(file);
  const triggers = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all();
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  db.exec(sql);
  db.close();
}
