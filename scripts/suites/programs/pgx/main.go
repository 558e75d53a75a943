// What programs with pgx usually do: see scripts/suites/drivers. Each check prints `NAME = ANSWER`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var address = fmt.Sprintf("host=127.0.0.1 port=%s user=postgres password=secret dbname=postgres connect_timeout=20", os.Getenv("PGPORT"))

type answers []any

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func connect(ctx context.Context, wishes string) *pgx.Conn {
	one, err := pgx.Connect(ctx, address+" "+wishes)
	must(err)
	return one
}

func run(ctx context.Context, one *pgx.Conn, text string, parameters ...any) {
	_, err := one.Exec(ctx, text, parameters...)
	must(err)
}

type asked interface {
	QueryRow(ctx context.Context, text string, parameters ...any) pgx.Row
}

func value[T any](ctx context.Context, one asked, text string, parameters ...any) T {
	var answer T
	must(one.QueryRow(ctx, text, parameters...).Scan(&answer))
	return answer
}

func code(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code
	}
	return fmt.Sprint(err)
}

func each(count int, work func(number int)) {
	var all sync.WaitGroup
	failed := make(chan any, count)
	for number := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			defer func() {
				if err := recover(); err != nil {
					failed <- err
				}
			}()
			work(number)
		}()
	}
	all.Wait()
	close(failed)
	for err := range failed {
		panic(err)
	}
}

// Other clients, so that connections of a pool change hands.
func others(ctx context.Context) {
	each(4, func(number int) {
		other := connect(ctx, fmt.Sprintf("application_name=other%d", number))
		defer other.Close(ctx)
		for range 3 {
			run(ctx, other, fmt.Sprintf("set timezone = 'Etc/GMT-%d'", number+1))
			value[int](ctx, other, "select count(*) from pg_class")
		}
	})
}

func namedStatements(ctx context.Context, one *pgx.Conn) any {
	other := connect(ctx, "")
	defer other.Close(ctx)
	for number := range 30 {
		name := fmt.Sprintf("s%d", number)
		_, err := one.Prepare(ctx, name, fmt.Sprintf("select %d + $1::int", number))
		must(err)
		_, err = other.Prepare(ctx, name, fmt.Sprintf("select %d * $1::int", number))
		must(err)
	}
	var said answers
	for round := range 3 {
		for number := range 30 {
			name := fmt.Sprintf("s%d", number)
			must(pgx.BeginFunc(ctx, one, func(tx pgx.Tx) error {
				said = append(said, value[int](ctx, tx, name, round))
				return nil
			}))
			said = append(said, value[int](ctx, other, name, round))
		}
		others(ctx)
	}
	return said
}

// pgx's default prepares each text, and keeps the last ones.
func cachedStatements(ctx context.Context, _ *pgx.Conn) any {
	one := connect(ctx, "statement_cache_capacity=10")
	defer one.Close(ctx)
	sum := 0
	for number := range 120 {
		sum += value[int](ctx, one, fmt.Sprintf("select %d + $1::int", number%40), 1)
		if number%50 == 0 {
			others(ctx)
		}
	}
	return sum
}

// What pgx offers for poolers.
func otherModes(ctx context.Context, _ *pgx.Conn) any {
	var said answers
	for _, mode := range []string{"cache_describe", "describe_exec", "exec", "simple_protocol"} {
		one := connect(ctx, "default_query_exec_mode="+mode)
		for number := range 5 {
			said = append(said, value[int](ctx, one, "select $1::int + 1", number))
		}
		one.Close(ctx)
	}
	return said
}

func planChanges(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "create table pgx_changes (a int)")
	run(ctx, one, "insert into pgx_changes values (1)")
	var said answers
	for _, step := range []string{"select 1", "alter table pgx_changes add b int default 2"} {
		other := connect(ctx, "")
		run(ctx, other, step)
		other.Close(ctx)
		for range 2 {
			rows, err := one.Query(ctx, "select * from pgx_changes")
			if err != nil {
				said = append(said, code(err))
				continue
			}
			for rows.Next() {
				values, _ := rows.Values()
				said = append(said, len(values))
			}
			if rows.Err() != nil {
				said = append(said, code(rows.Err()))
			}
		}
	}
	run(ctx, one, "drop table pgx_changes")
	return said
}

func transactions(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "create table pgx_transactions (a int primary key)")
	var said answers
	must(pgx.BeginTxFunc(ctx, one, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into pgx_transactions values (1)")
		must(err)
		said = append(said, value[string](ctx, tx, "show transaction_isolation"))
		err = pgx.BeginFunc(ctx, tx, func(nested pgx.Tx) error {
			_, err := nested.Exec(ctx, "insert into pgx_transactions values (1)")
			return err
		})
		said = append(said, code(err))
		return nil
	}))
	tx, err := one.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "insert into pgx_transactions values (2)")
	must(err)
	must(tx.Rollback(ctx))
	_, err = one.Exec(ctx, "insert into pgx_transactions values (1)")
	said = append(said, code(err), value[int](ctx, one, "select count(*) from pgx_transactions"))
	run(ctx, one, "drop table pgx_transactions")
	return said
}

func failures(ctx context.Context, one *pgx.Conn) any {
	var said answers
	for _, text := range []string{"select nonsense", "selec 1", "select 1/0", "drop table nowhere"} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
			_, err := one.Exec(ctx, text, mode)
			said = append(said, code(err), value[int](ctx, one, "select 7"))
		}
	}
	return said
}

func copies(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "create table pgx_copies (a int, b text)")
	count, err := one.CopyFrom(ctx, pgx.Identifier{"pgx_copies"}, []string{"a", "b"}, pgx.CopyFromSlice(20000, func(at int) ([]any, error) {
		return []any{at, fmt.Sprintf("row %d\t", at)}, nil
	}))
	must(err)
	said := answers{count}
	size, err := one.PgConn().CopyTo(ctx, io.Discard, "copy pgx_copies to stdout")
	must(err)
	said = append(said, size.RowsAffected())
	_, err = one.PgConn().CopyFrom(ctx, strings.NewReader("wrong\n"), "copy pgx_copies from stdin")
	said = append(said, code(err), value[int](ctx, one, "select sum(a) from pgx_copies"))
	run(ctx, one, "drop table pgx_copies")
	return said
}

// pgx ends a connection whose context ends; the request by hand leaves it.
func cancels(ctx context.Context, one *pgx.Conn) any {
	var said answers
	for range 3 {
		done := make(chan error)
		go func() {
			_, err := one.Exec(ctx, "select pg_sleep(60)")
			done <- err
		}()
		time.Sleep(300 * time.Millisecond)
		must(one.PgConn().CancelRequest(ctx))
		said = append(said, code(<-done), value[int](ctx, one, "select 8"))
	}
	return said
}

func listens(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "listen pgx_news")
	others(ctx)
	other := connect(ctx, "")
	for number := range 5 {
		run(ctx, other, fmt.Sprintf("notify pgx_news, 'number %d'", number))
	}
	other.Close(ctx)
	var said answers
	soon, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	for range 5 {
		note, err := one.WaitForNotification(soon)
		must(err)
		said = append(said, note.Payload)
	}
	return said
}

func sets(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "set timezone = 'Asia/Tokyo'; set statement_timeout = '47s'; set my.own = 'mine'")
	run(ctx, one, "set search_path = pg_catalog, public")
	others(ctx)
	var said answers
	for _, name := range []string{"timezone", "statement_timeout", "my.own", "search_path"} {
		said = append(said, value[string](ctx, one, "select current_setting($1)", name))
	}
	run(ctx, one, "reset all")
	return append(said, value[string](ctx, one, "show statement_timeout"))
}

func startsWithSettings(ctx context.Context, _ *pgx.Conn) any {
	one := connect(ctx, "application_name=starts search_path=pg_catalog statement_timeout=51s")
	defer one.Close(ctx)
	others(ctx)
	var said answers
	for _, name := range []string{"application_name", "search_path", "statement_timeout"} {
		said = append(said, value[string](ctx, one, "show "+name))
	}
	return said
}

func manyRows(ctx context.Context, one *pgx.Conn) any {
	rows, err := one.Query(ctx, "select n, repeat('x', 100) from generate_series(1, 100000) n")
	must(err)
	sum, number, text := 0, 0, ""
	_, err = pgx.ForEachRow(rows, []any{&number, &text}, func() error {
		sum += number
		return nil
	})
	must(err)
	large := value[string](ctx, one, "select repeat('y', 20000000)")
	return answers{sum, len(large), value[int](ctx, one, "select length($1::text)", strings.Repeat("z", 5000000))}
}

// Many statements before one Sync, and an error among them.
func batches(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "create table pgx_batches (a int unique)")
	var said answers
	for _, last := range []int{1000, 5} {
		batch := &pgx.Batch{}
		for number := range 500 {
			batch.Queue("insert into pgx_batches values ($1)", last*2+number)
			batch.Queue("select $1::int + $2::int", number, last)
		}
		batch.Queue("insert into pgx_batches values ($1)", last*2)
		said = append(said, code(one.SendBatch(ctx, batch).Close()))
		batch = &pgx.Batch{}
		sum := 0
		for number := range 300 {
			batch.Queue("select $1::int", number).QueryRow(func(row pgx.Row) error {
				var one int
				err := row.Scan(&one)
				sum += one
				return err
			})
		}
		must(one.SendBatch(ctx, batch).Close())
		said = append(said, sum)
	}
	said = append(said, value[int](ctx, one, "select count(*) from pgx_batches"))
	run(ctx, one, "drop table pgx_batches")
	return said
}

// Several Syncs on their way at once.
func pipelines(ctx context.Context, one *pgx.Conn) any {
	pipeline := one.PgConn().StartPipeline(ctx)
	for number := range 20 {
		pipeline.SendPrepare(fmt.Sprintf("p%d", number), fmt.Sprintf("select %d, $1::text", number), nil)
		pipeline.SendQueryPrepared(fmt.Sprintf("p%d", number), [][]byte{[]byte("x")}, nil, nil)
		if number%7 == 0 {
			pipeline.SendQueryPrepared("nobody has this", nil, nil, nil)
		}
		must(pipeline.Sync())
	}
	var said []string
	for syncs := 0; syncs < 20; {
		results, err := pipeline.GetResults()
		if err != nil {
			said = append(said, code(err))
			continue
		}
		switch result := results.(type) {
		case *pgconn.ResultReader:
			read := result.Read()
			if len(read.Rows) > 0 {
				said = append(said, string(read.Rows[0][0]))
			}
		case *pgconn.PipelineSync:
			syncs++
		}
	}
	must(pipeline.Close())
	return said
}

func temporaryTables(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "create temp table own (a int)")
	others(ctx)
	for number := range 20 {
		run(ctx, one, "insert into own values ($1)", number)
	}
	sum := value[int](ctx, one, "select sum(a) from own")
	run(ctx, one, "drop table own")
	return sum
}

func advisoryLocks(ctx context.Context, one *pgx.Conn) any {
	run(ctx, one, "select pg_advisory_lock(4716)")
	others(ctx)
	other := connect(ctx, "")
	defer other.Close(ctx)
	said := answers{value[bool](ctx, other, "select pg_try_advisory_lock(4716)")}
	said = append(said, value[bool](ctx, one, "select pg_advisory_unlock(4716)"))
	return append(said, value[bool](ctx, other, "select pg_try_advisory_lock(4716)"))
}

func ownPool(ctx context.Context, _ *pgx.Conn) any {
	pool, err := pgxpool.New(ctx, address+" pool_max_conns=10")
	must(err)
	defer pool.Close()
	sums := make([]int, 40)
	each(40, func(number int) {
		for round := range 10 {
			must(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				sums[number] += value[int](ctx, tx, "select $1::int + $2::int", number, round)
				return nil
			}))
		}
	})
	return sums
}

func types(ctx context.Context, one *pgx.Conn) any {
	var numbers []int
	var object map[string]any
	var bytes []byte
	var none *int
	must(one.QueryRow(ctx, "select $1::int[], $2::jsonb, $3::bytea, null::int", []int{1, 2}, map[string]any{"a": 1}, []byte{0, 255}).
		Scan(&numbers, &object, &bytes, &none))
	return answers{numbers, object, bytes, none}
}

func main() {
	checks := []struct {
		name  string
		check func(context.Context, *pgx.Conn) any
	}{
		{"namedStatements", namedStatements}, {"cachedStatements", cachedStatements}, {"otherModes", otherModes},
		{"planChanges", planChanges}, {"transactions", transactions}, {"failures", failures}, {"copies", copies},
		{"cancels", cancels}, {"listens", listens}, {"sets", sets}, {"startsWithSettings", startsWithSettings},
		{"manyRows", manyRows}, {"batches", batches}, {"pipelines", pipelines}, {"temporaryTables", temporaryTables},
		{"advisoryLocks", advisoryLocks}, {"ownPool", ownPool}, {"types", types},
	}
	for _, one := range checks {
		answer := func() (answer string) {
			defer func() {
				if err := recover(); err != nil {
					answer = fmt.Sprint("error ", err)
				}
			}()
			ctx, end := context.WithTimeout(context.Background(), 60*time.Second)
			defer end()
			connection := connect(ctx, "")
			defer connection.Close(context.Background())
			return fmt.Sprint(one.check(ctx, connection))
		}()
		answer = strings.ReplaceAll(answer, "\n", " ")
		fmt.Println(one.name, "=", answer[:min(400, len(answer))])
	}
}
