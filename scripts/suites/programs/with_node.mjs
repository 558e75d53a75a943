// What programs with node-postgres usually do: see scripts/suites/drivers. Each check prints `NAME = ANSWER`.

import { createRequire } from 'node:module';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';

// Where npm has put the packages, which is not beside this file.
const require = createRequire(`${process.env.MODULES}/`);
const pg = require('pg');
const Cursor = require('pg-cursor');
const copy = require('pg-copy-streams');

const address = { host: '127.0.0.1', port: Number(process.env.PGPORT), user: 'postgres', password: 'secret',
    database: 'postgres', connectionTimeoutMillis: 20000 };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function connect(wishes = {}) {
    const client = new pg.Client({ ...address, ...wishes });
    client.on('error', () => {});
    await client.connect();
    return client;
}

async function value(client, ...query) {
    const rows = (await client.query(...query)).rows;
    return Object.values(rows[0])[0];
}

// Other clients, so that connections of a pool change hands.
async function others(rounds = 3) {
    const one = async (number) => {
        const client = await connect({ application_name: `other${number}` });
        for (let round = 0; round < rounds; round++) {
            await client.query(`set timezone = 'Etc/GMT-${number + 1}'`);
            await client.query('select count(*) from pg_class');
        }
        await client.end();
    };
    await Promise.all([0, 1, 2, 3].map(one));
}

const checks = {
    async namedStatements(one) {
        const other = await connect();
        const answers = [];
        for (let round = 0; round < 3; round++) {
            for (let number = 0; number < 30; number++) {
                await one.query('begin');
                const mine = { name: `s${number}`, text: `select ${number} + $1::int as a`, values: [round] };
                answers.push(await value(one, mine));
                await one.query('commit');
                const theirs = { name: `s${number}`, text: `select ${number} * $1::int as a`, values: [round] };
                answers.push(await value(other, theirs));
            }
            await others();
        }
        await other.end();
        return answers;
    },

    async unnamedStatements(one) {
        const asked = [];
        for (let number = 0; number < 300; number++) {
            asked.push(value(one, 'select $1::int * 2 as a', [number]));
        }
        return (await Promise.all(asked)).reduce((sum, a) => sum + a, 0);
    },

    async planChanges(one) {
        await one.query('create table node_changes (a int); insert into node_changes values (1)');
        const answers = [];
        for (const step of ['select 1', 'alter table node_changes add b int default 2']) {
            const other = await connect();
            await other.query(step);
            await other.end();
            try {
                answers.push((await one.query({ name: 'changes', text: 'select * from node_changes' })).rows);
            } catch (error) {
                answers.push(error.code);
            }
        }
        await one.query('drop table node_changes');
        return answers;
    },

    async transactions(one) {
        await one.query('create table node_transactions (a int primary key)');
        const answers = [];
        await one.query('begin isolation level serializable');
        await one.query('insert into node_transactions values ($1)', [1]);
        answers.push(await value(one, 'show transaction_isolation'));
        await one.query('savepoint a');
        await one.query('insert into node_transactions values ($1)', [1]).catch((error) => answers.push(error.code));
        await one.query('select 1').catch((error) => answers.push(error.code));
        await one.query('rollback to a');
        await one.query('commit');
        await one.query('begin');
        await one.query('insert into node_transactions values (2)');
        await one.query('rollback');
        answers.push((await one.query('select a from node_transactions')).rows);
        await one.query('drop table node_transactions');
        return answers;
    },

    async errors(one) {
        const answers = [];
        for (const text of ['select nonsense', 'selec 1', 'select 1/0', 'drop table nowhere']) {
            for (const query of [text, { text, values: [] }, { name: 'wrong' + text, text }]) {
                await one.query(query).catch((error) => answers.push(error.code));
                answers.push(await value(one, 'select 7 as a'));
            }
        }
        return answers;
    },

    async copies(one) {
        await one.query('create table node_copies (a int, b text)');
        const lines = function* () {
            for (let number = 0; number < 20000; number++) yield `${number}\trow ${number}\n`;
        };
        await pipeline(Readable.from(lines()), one.query(copy.from('copy node_copies from stdin')));
        let bytes = 0;
        for await (const block of one.query(copy.to('copy node_copies to stdout'))) bytes += block.length;
        const answers = [bytes];
        await pipeline(Readable.from(['wrong\n']), one.query(copy.from('copy node_copies from stdin')))
            .catch((error) => answers.push(error.code));
        answers.push(await value(one, 'select sum(a) as a from node_copies'));
        await one.query('drop table node_copies');
        return answers;
    },

    async cancels(one) {
        const answers = [];
        for (let round = 0; round < 3; round++) {
            const sleeps = one.query('select pg_sleep(60)').catch((error) => answers.push(error.code));
            await pause(300);
            // node-postgres's own request: a new client that sends it for the old one's key.
            await new Promise((resolve) => {
                const canceller = new pg.Client(address);
                const { connection } = canceller;
                connection.on('connect', () => connection.cancel(one.processID, one.secretKey));
                connection.on('end', resolve);
                connection.on('error', () => {});
                connection.connect(address.port, address.host);
            });
            await sleeps;
            answers.push(await value(one, 'select 8 as a'));
        }
        return answers;
    },

    async listens(one) {
        const heard = [];
        one.on('notification', (note) => heard.push([note.channel, note.payload]));
        await one.query('listen node_news');
        await others();
        const other = await connect();
        for (let number = 0; number < 5; number++) await other.query(`notify node_news, 'number ${number}'`);
        await other.end();
        for (let look = 0; look < 100 && heard.length < 5; look++) await pause(50);
        return heard;
    },

    async sets(one) {
        await one.query("set timezone = 'Asia/Tokyo'; set statement_timeout = '47s'; set my.own = 'mine'");
        await one.query('set search_path = pg_catalog, public');
        await others();
        const names = ['timezone', 'statement_timeout', 'my.own', 'search_path'];
        const answers = [];
        for (const name of names) answers.push(await value(one, 'select current_setting($1) as a', [name]));
        await one.query('reset all');
        await others(1);
        answers.push(await value(one, 'show statement_timeout'));
        return answers;
    },

    async startsWithSettings() {
        const one = await connect({ application_name: 'starts', options: '-c search_path=pg_catalog',
            statement_timeout: 51000, lock_timeout: 52000 });
        await others();
        const answers = [];
        for (const name of ['application_name', 'search_path', 'statement_timeout', 'lock_timeout']) {
            answers.push(await value(one, `show ${name}`));
        }
        await one.end();
        return answers;
    },

    async manyRows(one) {
        const { rows } = await one.query("select n, repeat('x', 100) as b from generate_series(1, 100000) n");
        const large = await value(one, "select repeat('y', 20000000) as a");
        const back = await value(one, 'select length($1::text) as a', ['z'.repeat(5000000)]);
        return [rows.length, rows.reduce((sum, row) => sum + row.n, 0), large.length, back];
    },

    async cursors(one) {
        await one.query('begin');
        const cursor = one.query(new Cursor('select n from generate_series(1, 5000) n'));
        let [sum, reads] = [0, 0];
        for (let rows = await cursor.read(70); rows.length > 0; rows = await cursor.read(70)) {
            sum += rows.reduce((all, row) => all + row.n, 0);
            reads += 1;
            if (reads === 5) await others(1);
        }
        await cursor.close();
        await one.query('commit');
        return [sum, reads];
    },

    async cursorsLeftInTheMiddle(one) {
        const cursor = one.query(new Cursor('select n from generate_series(1, 5000) n'));
        const rows = await cursor.read(10);
        await cursor.close();
        return [rows.length, await value(one, 'select 9 as a')];
    },

    async types(one) {
        const { rows } = await one.query("select $1::int[] as a, $2::jsonb as b, '2024-02-29 12:00+00'::timestamptz as c, "
            + "'infinity'::float8 as d, $3::bytea as e, null::int as f, 12.50::numeric as g",
        [[1, 2], { a: [1] }, Buffer.from([0, 255])]);
        return Object.values(rows[0]).map(String);
    },

    async temporaryTables(one) {
        await one.query('create temp table own (a int)');
        await others();
        for (let number = 0; number < 20; number++) await one.query('insert into own values ($1)', [number]);
        const answer = await value(one, 'select sum(a) as a from own');
        await one.query('drop table own');
        return answer;
    },

    async advisoryLocks(one) {
        await one.query('select pg_advisory_lock(4714)');
        await others();
        const other = await connect();
        const answers = [await value(other, 'select pg_try_advisory_lock(4714) as a')];
        answers.push(await value(one, 'select pg_advisory_unlock(4714) as a'));
        answers.push(await value(other, 'select pg_try_advisory_lock(4714) as a'));
        await other.end();
        return answers;
    },

    async ownPool() {
        const pool = new pg.Pool({ ...address, max: 10 });
        const one = async (number) => {
            let sum = 0;
            for (let round = 0; round < 10; round++) {
                const client = await pool.connect();
                await client.query('begin');
                sum += await value(client, { name: 'sum', text: 'select $1::int + $2::int as a', values: [number, round] });
                await client.query(round % 2 ? 'commit' : 'rollback');
                client.release();
            }
            return sum;
        };
        const answers = await Promise.all([...Array(40).keys()].map(one));
        await pool.end();
        return answers;
    },

    async severalStatementsInOne(one) {
        const results = await one.query('select 1 as a; select 2 as a; begin; select 3 as a; commit');
        return results.map((result) => [result.command, result.rows.length]);
    },
};

for (const [name, check] of Object.entries(checks)) {
    let answer;
    const one = await connect().catch((error) => error);
    try {
        if (one instanceof Error) throw one;
        const late = new Promise((_, reject) => { setTimeout(() => reject(new Error('60 s were not enough')), 60000).unref(); });
        answer = JSON.stringify(await Promise.race([check(one), late]));
    } catch (error) {
        answer = `error ${error.code ?? ''} ${error.message}`;
    }
    console.log(name, '=', answer.replaceAll('\n', ' ').slice(0, 400));
    if (!(one instanceof Error)) await Promise.race([one.end(), pause(5000)]).catch(() => {});
}
process.exit(0);
