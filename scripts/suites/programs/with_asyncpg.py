"""What programs with asyncpg usually do: see scripts/suites/drivers. Each check prints `NAME = ANSWER`."""

import asyncio
import decimal
import io
import json
import os

import asyncpg

PORT = int(os.environ["PGPORT"])


async def connect(**wishes):
    return await asyncpg.connect(
        host="127.0.0.1", port=PORT, user="postgres", password="secret", database="postgres", timeout=20, **wishes
    )


async def others(rounds=3):
    """Other clients, so that connections of a pool change hands."""

    async def one(number):
        connection = await connect(server_settings={"application_name": f"other{number}"})
        for _ in range(rounds):
            await connection.execute(f"set timezone = 'Etc/GMT-{number + 1}'")
            await connection.fetchval("select count(*) from pg_class")
        await connection.close()

    await asyncio.gather(*(one(number) for number in range(4)))


async def named_statements(one):
    """Prepared statements of two connections, with transactions and other clients in between."""
    other = await connect()
    mine = [await one.prepare(f"select {number} + $1::int") for number in range(30)]
    theirs = [await other.prepare(f"select {number} * $1::int") for number in range(30)]
    await others()
    answers = []
    for number in range(30):
        async with one.transaction():
            answers.append(await mine[number].fetchval(number))
        answers.append(await theirs[number].fetchval(3))
    await other.close()
    return answers


async def cached_statements(one):
    """asyncpg prepares each text once and keeps the name."""
    answers = []
    for round_ in range(3):
        answers += [await one.fetchval(f"select $1::text || '{number}'", f"r{round_}") for number in range(150)]
        await others(1)
    return ["".join(answers[:3]), len(set(answers))]


async def plan_changes(one):
    """A table that changes under a statement that is prepared."""
    await one.execute("create table asyncpg_changes (a int); insert into asyncpg_changes values (1)")
    before = [tuple(row) for row in await one.fetch("select * from asyncpg_changes")]
    other = await connect()
    await other.execute("alter table asyncpg_changes add b int default 2")
    await other.close()
    after = [tuple(row) for row in await one.fetch("select * from asyncpg_changes")]
    await one.execute("drop table asyncpg_changes")
    return [before, after]


async def transactions(one):
    await one.execute("create table asyncpg_transactions (a int primary key)")
    async with one.transaction(isolation="serializable"):
        await one.execute("insert into asyncpg_transactions values (1)")
        level = await one.fetchval("show transaction_isolation")
        try:
            async with one.transaction():
                await one.execute("insert into asyncpg_transactions values (2)")
                await one.execute("insert into asyncpg_transactions values (1)")
        except asyncpg.UniqueViolationError as error:
            code = error.sqlstate
    try:
        async with one.transaction():
            await one.execute("insert into asyncpg_transactions values (3)")
            raise ValueError
    except ValueError:
        pass
    rows = [row[0] for row in await one.fetch("select a from asyncpg_transactions")]
    await one.execute("drop table asyncpg_transactions")
    return [level, code, rows]


async def errors(one):
    codes = []
    for statement in ["select nonsense", "selec 1", "select 1/0", "select $1::int + 'x'::text", "drop table nowhere"]:
        try:
            await one.fetch(statement, *([1] if "$1" in statement else []))
        except asyncpg.PostgresError as error:
            codes.append(error.sqlstate)
        codes.append(await one.fetchval("select 7"))
    return codes


async def copies(one):
    await one.execute("create table asyncpg_copies (a int, b text)")
    rows = [(number, f"row {number}\t'\\") for number in range(20_000)]
    said = [await one.copy_records_to_table("asyncpg_copies", records=rows)]
    text = "".join(f"{number},x\n" for number in range(5_000)).encode()
    said.append(await one.copy_to_table("asyncpg_copies", source=io.BytesIO(text), format="csv"))
    out = io.BytesIO()
    said.append(await one.copy_from_query("select * from asyncpg_copies order by a, b", output=out))
    try:
        await one.copy_to_table("asyncpg_copies", source=io.BytesIO(b"wrong\n"), format="csv")
    except asyncpg.PostgresError as error:
        said.append(error.sqlstate)
    said += [len(out.getvalue()), await one.fetchval("select sum(a) from asyncpg_copies")]
    await one.execute("drop table asyncpg_copies")
    return said


async def cancels(one):
    codes = []
    for _ in range(3):
        try:
            await one.execute("select pg_sleep(60)", timeout=0.3)
        except asyncio.TimeoutError:
            codes.append("timeout")
        codes.append(await one.fetchval("select 8"))
    task = asyncio.create_task(one.fetchval("select pg_sleep(60)"))
    await asyncio.sleep(0.3)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        codes.append("cancelled")
    return codes + [await one.fetchval("select 9")]


async def listens(one):
    heard = []
    await one.add_listener("asyncpg_news", lambda _c, _p, channel, text: heard.append([channel, text]))
    await others()
    for number in range(5):
        other = await connect()
        await other.execute(f"notify asyncpg_news, 'number {number}'")
        await other.close()
    for _ in range(100):
        if len(heard) == 5:
            break
        await asyncio.sleep(0.05)
    return heard


async def sets(one):
    await one.execute("set timezone = 'Asia/Tokyo'; set statement_timeout = '47s'; set my.own = 'mine'")
    await one.execute("set search_path = pg_catalog, public; set role postgres; reset role")
    await others()
    names = ["timezone", "statement_timeout", "my.own", "search_path", "application_name"]
    answers = [await one.fetchval(f"select current_setting('{name}')") for name in names]
    await one.execute("reset all")
    await others(1)
    return answers + [await one.fetchval("show statement_timeout")]


async def starts_with_settings(_):
    """Settings of the StartupMessage."""
    wishes = {"application_name": "starts", "search_path": "pg_catalog", "statement_timeout": "51s"}
    one = await connect(server_settings=wishes)
    await others()
    answers = [await one.fetchval(f"show {name}") for name in wishes]
    await one.close()
    return answers


async def many_rows(one):
    rows = await one.fetch("select n, repeat('x', 100) as text from generate_series(1, 100000) n")
    large = await one.fetchval("select repeat('y', 20000000)")
    back = await one.fetchval("select length($1::text)", "z" * 5_000_000)
    return [len(rows), sum(row[0] for row in rows), len(large), back]


async def cursors(one):
    seen, count = 0, 0
    async with one.transaction():
        async for row in one.cursor("select n from generate_series(1, 5000) n", prefetch=70):
            seen, count = seen + row[0], count + 1
            if count == 100:
                await others(1)
    return [seen, count]


async def pipelines(one):
    """executemany sends Binds and Executes one after the other."""
    await one.execute("create table asyncpg_pipelines (a int unique, b text)")
    await one.executemany("insert into asyncpg_pipelines values ($1, $2)", [(n, str(n)) for n in range(10_000)])
    try:
        await one.executemany("insert into asyncpg_pipelines values ($1, $2)", [(20_000, ""), (5, ""), (20_001, "")])
    except asyncpg.UniqueViolationError as error:
        code = error.sqlstate
    answer = [code, await one.fetchval("select count(*) from asyncpg_pipelines")]
    await one.execute("drop table asyncpg_pipelines")
    return answer


async def types(one):
    await one.execute("create type asyncpg_pair as (a int, b text)")
    row = await one.fetchrow(
        """select $1::int[] as a, $2::numeric as b, $3::jsonb as c, '2024-02-29 12:00+00'::timestamptz as d,
        'infinity'::float8 as e, row(1, 'x')::asyncpg_pair as f, $4::bytea as g, null::int as h""",
        [[1, 2], [3, 4]], decimal.Decimal("123456789.987654321"), json.dumps({"a": [1]}), b"\0\xff",
    )
    await one.execute("drop type asyncpg_pair")
    return [str(value) for value in row.values()]


async def temporary_tables(one):
    await one.execute("create temp table own (a int)")
    await others()
    await one.executemany("insert into own values ($1)", [(n,) for n in range(100)])
    await others()
    answer = await one.fetchval("select sum(a) from own")
    await one.execute("drop table own")
    return answer


async def advisory_locks(one):
    await one.execute("select pg_advisory_lock(4712)")
    await others()
    other = await connect()
    answers = [await other.fetchval("select pg_try_advisory_lock(4712)")]
    answers.append(await one.fetchval("select pg_advisory_unlock(4712)"))
    answers.append(await other.fetchval("select pg_try_advisory_lock(4712)"))
    await other.close()
    return answers


async def own_pool(_):
    """asyncpg's own pool resets each connection that is given back."""
    pool = await asyncpg.create_pool(
        host="127.0.0.1", port=PORT, user="postgres", password="secret", database="postgres", min_size=5, max_size=10
    )

    async def one(number):
        total = 0
        for round_ in range(10):
            async with pool.acquire() as connection:
                if number % 3 == 0:
                    await connection.execute(f"set statement_timeout = '{number + 20}s'")
                async with connection.transaction():
                    total += await connection.fetchval("select $1::int + $2::int", number, round_)
                if number % 3 == 1 and await connection.fetchval("show statement_timeout") != "0":
                    return "another's setting"
        return total

    answers = await asyncio.gather(*(one(number) for number in range(40)))
    await pool.close()
    return answers


async def forgets(one):
    """What a program says that manages statements itself."""
    await one.fetchval("select 11")
    await one.execute("deallocate all")
    await one.reload_schema_state()
    return [await one.fetchval("select 11"), await one.fetchval("select 12")]


CHECKS = [
    named_statements, cached_statements, plan_changes, transactions, errors, copies, cancels, listens, sets,
    starts_with_settings, many_rows, cursors, pipelines, types, temporary_tables, advisory_locks, own_pool, forgets,
]


async def main():
    for check in CHECKS:
        try:
            one = await connect()
            answer = json.dumps(await asyncio.wait_for(check(one), 60))
        except Exception as error:  # whatever it is, it is the answer
            answer = f"error {type(error).__name__} {getattr(error, 'sqlstate', '')} {error}"
        print(check.__name__, "=", answer.replace("\n", " ")[:400], flush=True)
        try:
            await asyncio.wait_for(one.close(), 10)
        except Exception:
            one.terminate()


asyncio.run(main())
