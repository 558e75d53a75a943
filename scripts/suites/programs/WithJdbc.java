// What programs with pgjdbc usually do: see scripts/suites/drivers. Each check prints `NAME = ANSWER`.

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

public class WithJdbc {
    interface Check { Object of(Connection one) throws Exception; }

    static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static Connection connect(String... wishes) throws SQLException {
        Properties properties = new Properties();
        properties.put("user", "postgres");
        properties.put("password", "secret");
        properties.put("connectTimeout", "20");
        for (int at = 0; at < wishes.length; at += 2) properties.put(wishes[at], wishes[at + 1]);
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/postgres", properties);
    }

    static void run(Connection one, String... statements) throws SQLException {
        try (Statement statement = one.createStatement()) {
            for (String text : statements) statement.execute(text);
        }
    }

    static String value(Connection one, String text) throws SQLException {
        try (Statement statement = one.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            rows.next();
            return rows.getString(1);
        }
    }

    // Other clients, so that connections of a pool change hands.
    static void others() throws Exception {
        each(4, number -> {
            try (Connection other = connect("ApplicationName", "other" + number)) {
                for (int round = 0; round < 3; round++) {
                    run(other, "set timezone = 'Etc/GMT-" + (number + 1) + "'");
                    value(other, "select count(*) from pg_class");
                }
            }
            return null;
        });
    }

    interface Numbered<T> { T of(int number) throws Exception; }

    static <T> List<T> each(int count, Numbered<T> work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try {
            List<Future<T>> begun = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                int mine = number;
                begun.add(threads.submit((Callable<T>) () -> work.of(mine)));
            }
            List<T> answers = new ArrayList<>();
            for (Future<T> future : begun) answers.add(future.get());
            return answers;
        } finally {
            threads.shutdownNow();
        }
    }

    static String code(SQLException error) { return error.getSQLState(); }

    // From its fifth execution on (here the first) pgjdbc gives a statement a name on the server.
    static Object namedStatements(Connection unused) throws Exception {
        List<Object> answers = new ArrayList<>();
        try (Connection one = connect("prepareThreshold", "1"); Connection other = connect("prepareThreshold", "1")) {
            List<PreparedStatement> mine = new ArrayList<>(), theirs = new ArrayList<>();
            for (int number = 0; number < 30; number++) {
                mine.add(one.prepareStatement("select " + number + " + ?::int"));
                theirs.add(other.prepareStatement("select " + number + " * ?::int"));
            }
            for (int round = 0; round < 3; round++) {
                for (int number = 0; number < 30; number++) {
                    one.setAutoCommit(number % 2 == 0);
                    answers.add(of(mine.get(number), round));
                    if (!one.getAutoCommit()) one.commit();
                    answers.add(of(theirs.get(number), round));
                }
                others();
            }
        }
        return answers;
    }

    static int of(PreparedStatement statement, int parameter) throws SQLException {
        statement.setInt(1, parameter);
        try (ResultSet rows = statement.executeQuery()) {
            rows.next();
            return rows.getInt(1);
        }
    }

    static Object statementsBeyondTheMost(Connection unused) throws Exception {
        int sum = 0;
        try (Connection one = connect("prepareThreshold", "1", "preparedStatementCacheQueries", "10")) {
            for (int number = 0; number < 120; number++) {
                try (PreparedStatement statement = one.prepareStatement("select " + number % 40 + " + ?::int")) {
                    sum += of(statement, 1);
                }
            }
        }
        return sum;
    }

    static Object planChanges(Connection unused) throws Exception {
        List<Object> answers = new ArrayList<>();
        try (Connection one = connect("prepareThreshold", "1"); Connection other = connect()) {
            run(one, "create table jdbc_changes (a int)", "insert into jdbc_changes values (1)");
            try (PreparedStatement statement = one.prepareStatement("select * from jdbc_changes")) {
                for (String step : new String[] {"select 1", "alter table jdbc_changes add b int default 2"}) {
                    run(other, step);
                    for (int round = 0; round < 2; round++) {
                        try (ResultSet rows = statement.executeQuery()) {
                            answers.add(rows.getMetaData().getColumnCount());
                        } catch (SQLException error) {
                            answers.add(code(error));
                        }
                    }
                }
            }
            run(one, "drop table jdbc_changes");
        }
        return answers;
    }

    static Object transactions(Connection one) throws Exception {
        List<Object> answers = new ArrayList<>();
        run(one, "create table jdbc_transactions (a int primary key)");
        one.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        one.setAutoCommit(false);
        run(one, "insert into jdbc_transactions values (1)");
        answers.add(value(one, "show transaction_isolation"));
        var savepoint = one.setSavepoint();
        try {
            run(one, "insert into jdbc_transactions values (1)");
        } catch (SQLException error) {
            answers.add(code(error));
        }
        one.rollback(savepoint);
        one.commit();
        run(one, "insert into jdbc_transactions values (2)");
        one.rollback();
        one.setReadOnly(true);
        try {
            run(one, "insert into jdbc_transactions values (3)");
        } catch (SQLException error) {
            answers.add(code(error));
        }
        one.rollback();
        one.setReadOnly(false);
        one.setAutoCommit(true);
        answers.add(value(one, "select array_agg(a) from jdbc_transactions"));
        others();
        answers.add(one.getTransactionIsolation());
        run(one, "drop table jdbc_transactions");
        return answers;
    }

    static Object errors(Connection one) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (String text : new String[] {"select nonsense", "selec 1", "select 1/0", "drop table nowhere"}) {
            try {
                run(one, text);
            } catch (SQLException error) {
                answers.add(code(error));
            }
            answers.add(value(one, "select 7"));
        }
        return answers;
    }

    static Object copies(Connection one) throws Exception {
        run(one, "create table jdbc_copies (a int, b text)");
        CopyManager copies = one.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder lines = new StringBuilder();
        for (int number = 0; number < 20000; number++) lines.append(number).append("\trow ").append(number).append('\n');
        List<Object> answers = new ArrayList<>();
        answers.add(copies.copyIn("copy jdbc_copies from stdin", new StringReader(lines.toString())));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        answers.add(copies.copyOut("copy jdbc_copies to stdout", out));
        answers.add(out.size());
        try {
            copies.copyIn("copy jdbc_copies from stdin", new StringReader("wrong\n"));
        } catch (SQLException error) {
            answers.add(code(error));
        }
        answers.add(value(one, "select sum(a) from jdbc_copies"));
        run(one, "drop table jdbc_copies");
        return answers;
    }

    static Object cancels(Connection one) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (int round = 0; round < 3; round++) {
            try (Statement statement = one.createStatement()) {
                statement.setQueryTimeout(1);
                statement.execute("select pg_sleep(60)");
            } catch (SQLException error) {
                answers.add(code(error));
            }
            answers.add(value(one, "select 8"));
        }
        return answers;
    }

    static Object listens(Connection one) throws Exception {
        run(one, "listen jdbc_news");
        others();
        try (Connection other = connect()) {
            for (int number = 0; number < 5; number++) run(other, "notify jdbc_news, 'number " + number + "'");
        }
        List<Object> heard = new ArrayList<>();
        for (int look = 0; look < 100 && heard.size() < 5; look++) {
            for (var note : one.unwrap(PGConnection.class).getNotifications(100)) heard.add(note.getParameter());
        }
        return heard;
    }

    static Object sets(Connection one) throws Exception {
        run(one, "set timezone = 'Asia/Tokyo'", "set statement_timeout = '47s'", "set my.own = 'mine'");
        one.setSchema("pg_catalog");
        one.setClientInfo("ApplicationName", "named");
        others();
        List<Object> answers = new ArrayList<>();
        for (String name : new String[] {"timezone", "statement_timeout", "my.own", "search_path", "application_name"}) {
            answers.add(value(one, "select current_setting('" + name + "')"));
        }
        answers.add(one.getSchema());
        run(one, "reset all");
        answers.add(value(one, "show statement_timeout"));
        return answers;
    }

    static Object startsWithSettings(Connection unused) throws Exception {
        List<Object> answers = new ArrayList<>();
        try (Connection one = connect("ApplicationName", "starts", "currentSchema", "pg_catalog", "options", "-c statement_timeout=51s")) {
            others();
            for (String name : new String[] {"application_name", "search_path", "statement_timeout", "extra_float_digits"}) {
                answers.add(value(one, "show " + name));
            }
        }
        return answers;
    }

    static Object manyRows(Connection one) throws Exception {
        long sum = 0;
        one.setAutoCommit(false);
        try (Statement statement = one.createStatement()) {
            statement.setFetchSize(70);
            try (ResultSet rows = statement.executeQuery("select n, repeat('x', 100) from generate_series(1, 20000) n")) {
                while (rows.next()) {
                    sum += rows.getInt(1);
                    if (rows.getRow() == 1000) others();
                }
            }
        }
        one.commit();
        one.setAutoCommit(true);
        List<Object> answers = new ArrayList<>(List.of(sum, value(one, "select repeat('y', 20000000)").length()));
        try (PreparedStatement statement = one.prepareStatement("select length(?::text)")) {
            statement.setString(1, "z".repeat(5_000_000));
            ResultSet rows = statement.executeQuery();
            rows.next();
            answers.add(rows.getInt(1));
        }
        return answers;
    }

    static Object batches(Connection one) throws Exception {
        List<Object> answers = new ArrayList<>();
        run(one, "create table jdbc_batches (a int unique, b text)");
        for (int end : new int[] {3000, 10}) {
            try (PreparedStatement statement = one.prepareStatement("insert into jdbc_batches values (?, ?)")) {
                for (int number = 0; number < end; number++) {
                    statement.setInt(1, end == 10 ? 5000 - 500 * number : number);
                    statement.setString(2, "x".repeat(number % 200));
                    statement.addBatch();
                }
                answers.add(statement.executeBatch().length);
            } catch (SQLException error) {
                answers.add(code(error));
            }
        }
        answers.add(value(one, "select count(*) from jdbc_batches"));
        run(one, "drop table jdbc_batches");
        return answers;
    }

    static Object types(Connection one) throws Exception {
        List<Object> answers = new ArrayList<>();
        try (PreparedStatement statement = one.prepareStatement("select ?::int[], ?::numeric, '2024-02-29'::date, encode(?::bytea, 'hex'), null::int, "
                + "'{\"a\": [1]}'::jsonb, 1.5::float8")) {
            statement.setArray(1, one.createArrayOf("int4", new Integer[] {1, 2}));
            statement.setBigDecimal(2, new java.math.BigDecimal("123456789.987654321"));
            statement.setBytes(3, new byte[] {0, -1});
            for (int round = 0; round < 7; round++) {
                ResultSet rows = statement.executeQuery();
                rows.next();
                for (int column = 1; round == 6 && column <= 7; column++) answers.add(rows.getString(column));
            }
        }
        return answers;
    }

    static Object temporaryTables(Connection one) throws Exception {
        run(one, "create temp table own (a int)");
        others();
        for (int number = 0; number < 20; number++) run(one, "insert into own values (" + number + ")");
        String answer = value(one, "select sum(a) from own");
        run(one, "drop table own");
        return answer;
    }

    static Object advisoryLocks(Connection one) throws Exception {
        run(one, "select pg_advisory_lock(4715)");
        others();
        try (Connection other = connect()) {
            List<Object> answers = new ArrayList<>(List.of(value(other, "select pg_try_advisory_lock(4715)")));
            answers.add(value(one, "select pg_advisory_unlock(4715)"));
            answers.add(value(other, "select pg_try_advisory_lock(4715)"));
            return answers;
        }
    }

    static Object crowd(Connection unused) throws Exception {
        return each(40, number -> {
            int sum = 0;
            try (Connection one = connect("prepareThreshold", "3")) {
                one.setAutoCommit(false);
                try (PreparedStatement statement = one.prepareStatement("select ?::int + " + number)) {
                    for (int round = 0; round < 10; round++) {
                        sum += of(statement, round);
                        if (round % 2 == 0) one.commit();
                        else one.rollback();
                    }
                }
            }
            return sum;
        });
    }

    // What is asked of the catalogues, in statements that are long.
    static Object metadata(Connection one) throws Exception {
        int columns = 0;
        try (ResultSet rows = one.getMetaData().getColumns(null, "pg_catalog", "pg_class", null)) {
            while (rows.next()) columns += 1;
        }
        return List.of(columns, one.getMetaData().getDatabaseProductVersion(), one.isValid(5));
    }

    public static void main(String[] arguments) {
        CHECKS.put("namedStatements", WithJdbc::namedStatements);
        CHECKS.put("statementsBeyondTheMost", WithJdbc::statementsBeyondTheMost);
        CHECKS.put("planChanges", WithJdbc::planChanges);
        CHECKS.put("transactions", WithJdbc::transactions);
        CHECKS.put("errors", WithJdbc::errors);
        CHECKS.put("copies", WithJdbc::copies);
        CHECKS.put("cancels", WithJdbc::cancels);
        CHECKS.put("listens", WithJdbc::listens);
        CHECKS.put("sets", WithJdbc::sets);
        CHECKS.put("startsWithSettings", WithJdbc::startsWithSettings);
        CHECKS.put("manyRows", WithJdbc::manyRows);
        CHECKS.put("batches", WithJdbc::batches);
        CHECKS.put("types", WithJdbc::types);
        CHECKS.put("temporaryTables", WithJdbc::temporaryTables);
        CHECKS.put("advisoryLocks", WithJdbc::advisoryLocks);
        CHECKS.put("crowd", WithJdbc::crowd);
        CHECKS.put("metadata", WithJdbc::metadata);
        ExecutorService threads = Executors.newCachedThreadPool();
        CHECKS.forEach((name, check) -> {
            String answer;
            try {
                answer = threads.submit(() -> {
                    try (Connection one = connect()) {
                        return String.valueOf(check.of(one));
                    }
                }).get(60, TimeUnit.SECONDS);
            } catch (Exception error) {
                answer = "error " + error;
            }
            answer = answer.replace('\n', ' ');
            System.out.println(name + " = " + answer.substring(0, Math.min(400, answer.length())));
        });
        System.exit(0);
    }
}
