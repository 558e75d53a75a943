"""What programs with psycopg 3 usually do: see scripts/suites/drivers. Each check prints `NAME = ANSWER`."""

import json
import os
import signal
import threading

import psycopg
from psycopg import sql

ADDRESS = f"host=127.0.0.1 port={os.environ['PGPORT']} user=postgres password=secret dbname=postgres connect_timeout=20"


def connect(**wishes):
    return psycopg.connect(ADDRESS, autocommit=True, **wishes)


def value(connection, statement, parameters=None, **how):
    return connection.execute(statement, parameters, **how).fetchone()[0]


def others(rounds=3):
    """Other clients, so that connections of a pool change hands."""

    def one(number):
        with connect(application_name=f"other{number}") as connection:
            for _ in range(rounds):
                connection.execute(f"set timezone = 'Etc/GMT-{number + 1}'")
                value(connection, "select count(*) from pg_class")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def named_statements(one):
    """Prepared statements of two connections, with transactions and other clients in between."""
    answers = []
    with connect() as other:
        for round_ in range(3):
            for number in range(30):
                with one.transaction():
                    answers.append(value(one, f"select {number} + %s::int", [number], prepare=True))
                answers.append(value(other, f"select {number} * %s::int", [round_], prepare=True))
            others()
    return answers


def statements_beyond_the_most(one):
    """psycopg closes the statement used longest ago (by DEALLOCATE, or Close)."""
    one.prepared_max = 10
    answers = []
    for number in [*range(40), *range(40)]:
        answers.append(value(one, f"select {number} + %s::int", [1], prepare=True))
    return answers


def by_itself_prepared(one):
    """A statement is prepared at its sixth execution."""
    answers = []
    for number in range(12):
        answers.append(value(one, "select %s::int * 2", [number]))
        if number % 3 == 0:
            others(1)
    return answers


def plan_changes(one):
    one.execute("create table psycopg_changes (a int)")
    one.execute("insert into psycopg_changes values (1)")
    answers = []
    for step in ["select 1", "alter table psycopg_changes add b int default 2"]:
        with connect() as other:
            other.execute(step)
        for _ in range(2):
            try:
                answers.append(one.execute("select * from psycopg_changes", prepare=True).fetchall())
            except psycopg.Error as error:
                answers.append(error.sqlstate)
    one.execute("drop table psycopg_changes")
    return answers


def transactions(one):
    one.execute("create table psycopg_transactions (a int primary key)")
    one.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    codes = []
    with one.transaction():
        one.execute("insert into psycopg_transactions values (1)")
        codes.append(value(one, "show transaction_isolation"))
        try:
            with one.transaction():
                one.execute("insert into psycopg_transactions values (2)")
                one.execute("insert into psycopg_transactions values (1)")
        except psycopg.errors.UniqueViolation as error:
            codes.append(error.sqlstate)
    with one.transaction(force_rollback=True):
        one.execute("insert into psycopg_transactions values (3)")
    one.read_only = True
    try:
        with one.transaction():
            one.execute("insert into psycopg_transactions values (4)")
    except psycopg.Error as error:
        codes.append(error.sqlstate)
    one.read_only = None
    codes += [row[0] for row in one.execute("select a from psycopg_transactions")]
    one.execute("drop table psycopg_transactions")
    return codes


def without_autocommit(_):
    """The default of psycopg: a BEGIN before the first statement."""
    with psycopg.connect(ADDRESS) as one:
        one.execute("create table psycopg_commits (a int)")
        one.commit()
        one.execute("insert into psycopg_commits values (1)")
        one.rollback()
        one.execute("insert into psycopg_commits values (2)")
        one.commit()
        answer = one.execute("select * from psycopg_commits").fetchall()
        one.execute("drop table psycopg_commits")
    return answer


def errors(one):
    codes = []
    for statement in ["select nonsense", "selec 1", "select 1/0", "drop table nowhere", "select 'x'::int"]:
        for prepare in [False, True]:
            try:
                one.execute(statement, prepare=prepare)
            except psycopg.Error as error:
                codes.append(error.sqlstate)
            codes.append(value(one, "select 7"))
    return codes


def copies(one):
    one.execute("create table psycopg_copies (a int, b text)")
    cursor = one.cursor()
    with cursor.copy("copy psycopg_copies from stdin") as copy:
        for number in range(20_000):
            copy.write_row((number, f"row {number}\t'\\"))
    answers = [cursor.rowcount]
    with cursor.copy("copy psycopg_copies from stdin (format binary)") as copy:
        copy.set_types(["int4", "text"])
        for number in range(1000):
            copy.write_row((number, None))
    size = 0
    with cursor.copy("copy psycopg_copies to stdout") as copy:
        for block in copy:
            size += len(block)
    answers.append(size)
    try:
        with cursor.copy("copy psycopg_copies from stdin") as copy:
            copy.write("wrong\n")
    except psycopg.Error as error:
        answers.append(error.sqlstate)
    try:
        with cursor.copy("copy psycopg_copies from stdin") as copy:
            copy.write_row((1, "never"))
            raise ValueError
    except ValueError:
        answers.append("stopped")
    answers.append(value(one, "select sum(a) from psycopg_copies"))
    one.execute("drop table psycopg_copies")
    return answers


def cancels(one):
    codes = []
    for _ in range(3):
        timer = threading.Timer(0.4, one.cancel_safe)
        timer.start()
        try:
            one.execute("select pg_sleep(60)")
        except psycopg.Error as error:
            codes.append(error.sqlstate)
        timer.join()
        codes.append(value(one, "select 8"))
    return codes


def listens(one):
    one.execute("listen psycopg_news")
    others()
    with connect() as other:
        for number in range(5):
            other.execute(f"notify psycopg_news, 'number {number}'")
    return [[note.channel, note.payload] for note in one.notifies(timeout=10, stop_after=5)]


def sets(one):
    one.execute("set timezone = 'Asia/Tokyo'")
    one.execute("set statement_timeout = '47s'")
    one.execute("select set_config('my.own', %s, false)", ["mine"])
    one.execute("set search_path = pg_catalog, public")
    one.execute("set client_encoding = 'LATIN1'")
    others()
    names = ["timezone", "statement_timeout", "my.own", "search_path", "client_encoding"]
    answers = [value(one, "select current_setting(%s)", [name]) for name in names]
    answers += [one.info.parameter_status("TimeZone"), one.info.encoding, value(one, "select 'é'::text")]
    with one.transaction():
        one.execute("set local statement_timeout = '48s'")
        answers.append(value(one, "show statement_timeout"))
    answers.append(value(one, "show statement_timeout"))
    one.execute("discard all")
    others(1)
    return answers + [value(one, "show statement_timeout"), value(one, "show search_path")]


def starts_with_settings(_):
    options = "-c statement_timeout=51s -c search_path=pg_catalog"
    with connect(options=options, application_name="starts") as one:
        others()
        names = ["statement_timeout", "search_path", "application_name"]
        return [value(one, f"show {name}") for name in names]


def many_rows(one):
    rows = one.execute("select n, repeat('x', 100) from generate_series(1, 100000) n").fetchall()
    large = value(one, "select repeat('y', 20000000)")
    back = value(one, "select length(%s::text)", ["z" * 5_000_000])
    streamed = sum(row[0] for row in one.cursor().stream("select n from generate_series(1, 50000) n"))
    return [len(rows), sum(row[0] for row in rows), len(large), back, streamed]


def cursors(one):
    seen = 0
    with one.transaction(), one.cursor("within") as cursor:
        cursor.itersize = 70
        cursor.execute("select n from generate_series(1, 5000) n")
        for count, row in enumerate(cursor):
            seen += row[0]
            if count == 100:
                others(1)
    with one.cursor("beyond", withhold=True) as cursor:
        cursor.execute("select n from generate_series(1, 50) n")
        others()
        seen += sum(row[0] for row in cursor)
    return seen


def pipelines(one):
    one.execute("create table psycopg_pipelines (a int unique)")
    answers = []
    with one.pipeline():
        cursors = [one.execute("select %s::int", [number]) for number in range(300)]
        answers.append(sum(cursor.fetchone()[0] for cursor in cursors))
        with one.cursor() as cursor:
            cursor.executemany("insert into psycopg_pipelines values (%s)", [(n,) for n in range(3000)])
    try:
        with one.pipeline() as pipeline:
            one.execute("insert into psycopg_pipelines values (10000)")
            pipeline.sync()
            one.execute("insert into psycopg_pipelines values (10001)")
            one.execute("insert into psycopg_pipelines values (5)")
            one.execute("insert into psycopg_pipelines values (10002)")
    except psycopg.Error as error:
        answers.append(error.sqlstate)
    with one.pipeline():
        with one.transaction():
            one.execute("insert into psycopg_pipelines values (10003)")
        last = one.execute("select max(a) from psycopg_pipelines")
        answers.append(last.fetchone()[0])
    answers.append(value(one, "select count(*) from psycopg_pipelines"))
    one.execute("drop table psycopg_pipelines")
    return answers


def types(one):
    row = one.execute(
        "select %s::int[], %s::jsonb, 'infinity'::float8, %b::bytea, null::int, '{1.5,2}'::numeric[], int4range(1, 5)",
        [[1, 2], json.dumps({"a": [1]}), b"\0\xff"], binary=True,
    ).fetchone()
    return [str(value) for value in row]


def temporary_tables(one):
    one.execute("create temp table own (a int)")
    others()
    one.cursor().executemany("insert into own values (%s)", [(n,) for n in range(100)])
    others()
    answer = value(one, "select sum(a) from own")
    one.execute("drop table own")
    return answer


def advisory_locks(one):
    one.execute("select pg_advisory_lock(4713)")
    others()
    with connect() as other:
        answers = [value(other, "select pg_try_advisory_lock(4713)")]
        answers.append(value(one, "select pg_advisory_unlock(4713)"))
        answers.append(value(other, "select pg_try_advisory_lock(4713)"))
    return answers


def two_phases(one):
    answers = []
    one.execute("create table psycopg_phases (a int)")
    with psycopg.connect(ADDRESS) as two:
        mark = two.xid(1, "shortline", "suite")
        two.tpc_begin(mark)
        two.execute("insert into psycopg_phases values (1)")
        two.tpc_prepare()
        answers.append(value(one, "select count(*) from psycopg_phases"))
        two.tpc_commit()
    answers.append(value(one, "select count(*) from psycopg_phases"))
    one.execute("drop table psycopg_phases")
    return answers


def functions_that_set(one):
    one.execute(sql.SQL("do $$ begin perform set_config('statement_timeout', '49s', false); end $$"))
    others()
    answer = value(one, "show statement_timeout")
    one.execute("reset statement_timeout")
    return [answer, value(one, "show statement_timeout")]


CHECKS = [
    named_statements, statements_beyond_the_most, by_itself_prepared, plan_changes, transactions, without_autocommit,
    errors, copies, cancels, listens, sets, starts_with_settings, many_rows, cursors, pipelines, types,
    temporary_tables, advisory_locks, two_phases, functions_that_set,
]


class TooLong(Exception):
    pass


def too_long(*_):
    raise TooLong


signal.signal(signal.SIGALRM, too_long)
for check in CHECKS:
    try:
        signal.alarm(60)
        with connect() as connection:
            answer = json.dumps(check(connection))
    except Exception as error:  # whatever it is, it is the answer
        answer = f"error {type(error).__name__} {getattr(error, 'sqlstate', '')} {error}"
    signal.alarm(0)
    print(check.__name__, "=", answer.replace("\n", " ")[:400], flush=True)
