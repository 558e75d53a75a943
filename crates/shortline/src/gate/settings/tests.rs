//! The settings of flags and file together, and the combinations that are refused.
#![allow(clippy::unwrap_used)]
use std::num::NonZeroU64;
use std::time::Duration;

use clap::Parser;
use shortline_gate::pool::PoolMode;
use shortline_sched::Estimator;
use shortline_sched::admission::{AdmissionConfig, Capacity, OpenUp, Order};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

const UPSTREAM: &str = "postgres --upstream db:5432";

/// The settings of flags and a file, or the error without the file's folder.
fn settings(flags: &str, file: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, file).unwrap();
    let words = std::iter::once("gate").chain(flags.split_whitespace());
    let mut line = Line::try_parse_from(words).unwrap();
    line.args.config = Some(path);
    read(&line.args).map_err(|error| {
        let folder = format!("{}/", folder.path().display());
        error.to_string().replace(&folder, "")
    })
}

fn refused(flags: &str, file: &str) -> String {
    let error = settings(flags, file).unwrap_err();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn nothing_said_is_the_default_of_every_room() {
    let settings = settings(UPSTREAM, "").unwrap();
    assert_eq!(settings.limits, Limits::default());
    let admission = AdmissionConfig {
        capacity: Capacity::Auto,
        ..AdmissionConfig::default()
    };
    assert_eq!(settings.gate.admission, admission);
    assert_eq!(settings.classifier.sources.len(), 2);
    assert_eq!(settings.upstream, "db:5432");
    assert_eq!(settings.upstream_tls, UpstreamTlsMode::Follow);
}

#[test]
fn flags_lie_over_the_file() {
    let file = "[gate]\nupstream = \"other:1\"\ncapacity = \"400ms\"\npolicy = \"fifo\"\n\
                types-from = [\"statement\"]\nlisten = [\"[::1]:6432\"]\ndrain = \"1s\"\n";
    let settings = settings(&format!("{UPSTREAM} --policy sjf"), file).unwrap();
    assert_eq!(settings.upstream, "db:5432");
    assert_eq!(settings.gate.admission.order, Order::Sjf);
    assert_eq!(
        settings.gate.admission.capacity,
        "400ms".parse::<Capacity>().unwrap()
    );
    assert_eq!(settings.classifier.sources.len(), 1);
    assert_eq!(settings.limits.drain_time_max, Duration::from_secs(1));
}

#[test]
fn how_to_admit_is_told_on() {
    let calibrate = settings(
        &format!("{UPSTREAM} --capacity calibrate --trial-time 2s"),
        "",
    );
    let admission = calibrate.unwrap().gate.admission;
    assert_eq!(admission.capacity, Capacity::Calibrate);
    assert_eq!(admission.trial_ns.get(), 2_000_000_000);
    let flags = "--aging 3 --shed 1s --stall-max 0s --dry-run --estimator moving-average";
    let admission = settings(&format!("{UPSTREAM} {flags}"), "")
        .unwrap()
        .gate
        .admission;
    assert_eq!(admission.order, Order::SjfAging("3".parse().unwrap()));
    assert_eq!(admission.shed_wait_ns, NonZeroU64::new(1_000_000_000));
    assert_eq!(admission.stall_ns, None);
    assert!(admission.dry_run);
    assert_eq!(admission.estimator, Estimator::MovingAverage);
    let flags = format!("{UPSTREAM} --oldest-share 5%");
    let admission = settings(&flags, "").unwrap().gate.admission;
    assert_eq!(admission.oldest_share, "5%".parse().unwrap());
}

#[test]
fn rules_come_from_the_file_and_a_wrong_one_is_named() {
    let file = "[gate]\ntags-from = [\"10.0.1.0/24\"]\n[[gate.rule]]\ntype = \"batch\"\nuser = \"night\"\n\
                tag = { route = \"/a\" }\n";
    let settings = settings(UPSTREAM, file).unwrap();
    assert_eq!(settings.classifier.rules[0].name.as_deref(), Some("batch"));
    let foreign = refused(
        UPSTREAM,
        &file.replace("tags-from = [\"10.0.1.0/24\"]\n", ""),
    );
    assert!(
        foreign.contains("asks for a tag, and nobody's tags count"),
        "{foreign}"
    );
    let network = refused(UPSTREAM, &file.replace("10.0.1.0/24", "10.0.1.0/33"));
    assert!(
        network.starts_with("a.toml:2: gate.tags-from:"),
        "{network}"
    );
    let wrong = refused(
        UPSTREAM,
        "[gate]\n[[gate.rule]]\ntype = \"x\"\nstatement = \"(\"\n",
    );
    assert!(wrong.contains("rule 1 (`x`): statement `(`"), "{wrong}");
    let strange = refused(
        UPSTREAM,
        "[gate]\n[[gate.rule]]\ntype = \"x\"\nusr = \"(\"\n",
    );
    assert!(strange.starts_with("a.toml:4: gate.rule.usr:"), "{strange}");
}

#[test]
fn a_monitor_asks_what_is_behind_the_gate() {
    let monitor = "--monitor postgres://m:geheim@127.0.0.1/postgres";
    let settings = settings(&format!("{UPSTREAM} {monitor}"), "").unwrap();
    assert!(settings.gate.watches_locks);
    assert!(!format!("{settings:?}").contains("geheim"));
    for (flags, expected) in [
        (
            format!("mysql --upstream db:3306 {monitor}"),
            "not what is behind",
        ),
        (format!("http --upstream db:80 {monitor}"), "means nothing"),
        (
            format!("{UPSTREAM} --monitor-password-file a"),
            "whose password?",
        ),
    ] {
        let error = refused(&flags, "");
        assert!(error.starts_with("--monitor"), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let error = refused(UPSTREAM, "[gate]\nmonitor = \"postgres://db\"\n");
    assert!(error.starts_with("a.toml:2: gate.monitor:"), "{error}");
}

#[test]
fn contradictions_name_the_flag_or_the_line() {
    assert!(refused("postgres", "").contains("--upstream HOST:PORT"));
    let aging = refused(UPSTREAM, "[gate]\npolicy = \"fifo\"\naging = 3.0\n");
    assert!(aging.starts_with("a.toml:3: gate.aging:"), "{aging}");
    let aging = refused(&format!("{UPSTREAM} --policy fifo --aging 3"), "");
    assert!(aging.starts_with("--aging:"), "{aging}");
    let share = refused(&format!("{UPSTREAM} --policy fifo --oldest-share 5%"), "");
    assert!(
        share.starts_with("--oldest-share: is for policies gittins, and sjf"),
        "{share}"
    );
    let share = refused(UPSTREAM, "[gate]\naging = 3.0\noldest-share = \"5%\"\n");
    assert!(share.starts_with("a.toml:3: gate.oldest-share:"), "{share}");
    let tls = refused(UPSTREAM, "[gate]\ntls-required = true\n");
    assert!(tls.starts_with("a.toml:2: gate.tls-required:"), "{tls}");
    let verify = refused(&format!("{UPSTREAM} --upstream-tls verify-full"), "");
    assert!(verify.contains("--upstream-ca"), "{verify}");
    let authorities = refused(&format!("{UPSTREAM} --upstream-ca a.pem"), "");
    assert!(authorities.contains("verify-full"), "{authorities}");
    let http = refused("http --upstream app:80 --statements-max 5", "");
    assert!(
        http.starts_with("--statements-max: means nothing"),
        "{http}"
    );
    let mysql = refused("mysql --upstream db:3306 --admin-users ops", "");
    assert!(mysql.starts_with("--admin-users: is for gate"), "{mysql}");
    let size = refused(UPSTREAM, "[gate]\npool = \"off\"\npool-size = 3\n");
    assert!(
        size.starts_with("a.toml:3: gate.pool-size: there is"),
        "{size}"
    );
    let dry = refused(&format!("{UPSTREAM} --dry-run --capacity calibrate"), "");
    assert!(dry.starts_with("--dry-run: contradicts"), "{dry}");
    let trial = refused(&format!("{UPSTREAM} --trial-time 1s"), "");
    assert!(trial.starts_with("--trial-time: is used by"), "{trial}");
    let authorities = refused("http --upstream app:80 --upstream-ca a.pem", "");
    assert!(authorities.contains("https://HOST:PORT"), "{authorities}");
    settings("http --upstream https://app:443 --upstream-ca a.pem", "").unwrap();
    let wait = refused(&format!("{UPSTREAM} --wait-max 0s"), "");
    assert!(
        wait.starts_with("--wait-max: must be more than 0"),
        "{wait}"
    );
    let held = refused(&format!("{UPSTREAM} --held-size-max 2MiB"), "");
    assert!(held.contains("from 1KiB to 1MiB"), "{held}");
    let shed = refused(UPSTREAM, "[gate]\nshed = \"0s\"\n");
    assert!(
        shed.starts_with("a.toml:2: gate.shed: must be more than 0"),
        "{shed}"
    );
    let capacity = refused(UPSTREAM, "[gate]\ncapacity = \"0s\"\n");
    assert!(
        capacity.starts_with("a.toml:2: gate.capacity: capacity `0ns`"),
        "{capacity}"
    );
}

#[test]
fn tenants_have_weights_limits_and_something_that_names_them() {
    let file = "[gate]\ntenant-by = \"user\"\nunqueued-max = 3\nidle-transaction-max = \"5min\"\n\
                [gate.tenant.shop]\nweight = 4\nconnections-max = 100\ncapacity-max = \"50%\"\n\
                [gate.tenant.\"*\"]\nrunning-max = 2\nwaiting-max = 50\n\
                [[gate.rule]]\nuser = \"pager\"\nwait = false\n";
    let settings = settings(UPSTREAM, file).unwrap();
    let table = &settings.gate.tenants;
    let shop = &table.named["shop"];
    assert_eq!(
        (shop.weight.get(), shop.connections_max.unwrap().get()),
        (4, 100)
    );
    assert_eq!(shop.capacity_max.unwrap().to_string(), "50%");
    assert_eq!(table.others.running_max.unwrap().get(), 2);
    assert_eq!(table.others.waiting_max, Some(50));
    assert_eq!(settings.classifier.tenant_by.to_string(), "user");
    assert_eq!(settings.gate.admission.unqueued_max, 3);
    let idle = settings.limits.idle_transaction_time_max;
    assert_eq!(idle, Some(Duration::from_secs(300)));
}

#[test]
fn rules_say_what_becomes_of_runaways_and_how_sessions_are_served() {
    let file = "[gate]\npool = \"transaction\"\npool-users = \"u\"\nmonitor = \"postgres://m@db/postgres\"\n\
                [[gate.rule]]\nuser = \"etl\"\nrunaway = \"charge\"\n\
                [[gate.rule]]\nstatement = \"^select\"\nrunaway = \"cancel:5\"\n\
                [[gate.rule]]\nuser = \"migrate\"\npool = \"session\"\nidle-transaction-max = \"1h\"\n";
    let rules = settings(UPSTREAM, file).unwrap().classifier.rules;
    let runaway = |at: usize| rules[at].runaway.unwrap().to_string();
    assert_eq!(
        (runaway(0), runaway(1)),
        ("charge:20".into(), "cancel:5".into())
    );
    assert_eq!(rules[2].pool, Some(PoolMode::Session));
    let idle = rules[2].idle_transaction_max.unwrap().duration();
    assert_eq!(idle, Duration::from_secs(3600));
}

#[test]
fn rules_on_runaways_and_sessions_that_cannot_be_are_refused_in_one_line() {
    for (rule, told) in [
        ("runaway = \"cancel\"", "rule 1: runaway: it is the monitor"),
        ("runaway = \"cancel:1\"", "2 or more"),
        (
            "pool = \"session\"",
            "rule 1: pool: takes --pool transaction",
        ),
        ("pool = \"off\"", "`session` or `transaction`"),
        ("idle-transaction-max = \"5\"", "5"),
        (
            "statement = \"x\"\nidle-transaction-max = \"5s\"",
            "rule 1: idle-transaction-max is said of a client",
        ),
    ] {
        let error = settings(UPSTREAM, &format!("[[gate.rule]]\n{rule}\n")).unwrap_err();
        assert!(
            error.contains(told) && error.lines().count() == 1,
            "{error}"
        );
    }
    let pool = "postgres --upstream db:5432 --pool transaction --pool-users u";
    let rule = "[[gate.rule]]\ntag = { route = \"x\" }\npool = \"session\"\n";
    let error = settings(pool, &format!("[gate]\ntags-from = [\"any\"]\n{rule}")).unwrap_err();
    assert!(
        error.contains("rule 1: pool is said of a client"),
        "{error}"
    );
    let http = "http --upstream db:5432";
    let error = refused(http, "[[gate.rule]]\npool = \"session\"\n");
    assert!(
        error.contains("rule 1: pool: takes --pool transaction"),
        "{error}"
    );
}

#[test]
fn a_limit_to_open_up_to_is_above_a_capacity_that_is_one() {
    let open_up = |flags: &str| {
        let settings = settings(&format!("{UPSTREAM} {flags}"), "");
        settings.map(|settings| settings.gate.admission.open_up)
    };
    assert_eq!(open_up(""), Ok(OpenUp::OwnOnly));
    assert_eq!(open_up("--open-up off --dry-run"), Ok(OpenUp::Off));
    assert!(open_up("--capacity 400ms --open-up 2s").is_ok());
    assert!(open_up("--open-up 2s").is_ok());
    for (flags, told) in [
        (
            "--capacity 400ms --open-up 400ms",
            "must be more than the capacity",
        ),
        (
            "--capacity off --open-up 2s",
            "is for --capacity TIME or auto",
        ),
        (
            "--capacity calibrate --open-up 2s",
            "is for --capacity TIME or auto",
        ),
        ("--dry-run --open-up 2s", "in a dry run"),
    ] {
        let error = open_up(flags).unwrap_err();
        assert!(
            error.starts_with("--open-up: ") && error.contains(told),
            "{error}"
        );
    }
}

#[test]
fn tenants_that_cannot_be_are_refused_in_one_line() {
    for (file, told) in [
        (
            "[gate.tenant.shop]\nweight = 2\n",
            "nothing is of tenant `shop`",
        ),
        ("[gate.tenant.\"*\"]\nweight = 0\n", "from 1 to 1000"),
        ("[gate.tenant.\"*\"]\ncapacity-max = \"2\"\n", "such as 25%"),
        ("[gate.tenant.\"*\"]\nspeed = 2\n", "speed"),
        ("[gate]\ntenant-by = \"host\"\n", "choose none, user"),
        ("[gate]\ntenant-by = \"tag:shop\"\n", "add tags-from"),
        (
            "[gate]\ntenant-by = \"application-name\"\n",
            "add tags-from",
        ),
        ("[gate]\ntenant-by = \"colour\"\n", "tag:KEY"),
        (
            "[[gate.rule]]\nuser = \"a\"\n",
            "add type, tenant, wait, server, runaway, pool or idle-transaction-max",
        ),
    ] {
        let error = settings(UPSTREAM, file).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
    let http = "http --upstream db:5432";
    let told = refused(http, "[gate]\ntenant-by = \"user\"\n");
    assert!(told.contains("choose none, host or header:NAME"), "{told}");
    for (file, told) in [
        (
            "[gate]\ntenant-by = \"header:X-Priority\"\n",
            "add tags-from",
        ),
        (
            "[gate]\ntags-from = [\"10.0.0.0/24\"]\n",
            "add tenant-by header:NAME",
        ),
        (
            "[gate]\ntenant-by = \"header:X-Priority\"\ntags-from = [\"user:a\"]\n",
            "give the networks of your proxies",
        ),
    ] {
        let error = refused(http, file);
        assert!(error.contains(told), "{error}");
    }
    let told = refused(http, "[gate.tenant.\"*\"]\nconnections-max = 2\n");
    assert!(told.contains("leave it out"), "{told}");
}

const SEVERAL: &str = "postgres --upstream db1:5432,db2:5432 --pool transaction --pool-users u";

#[test]
fn several_servers_are_watched() {
    let flags = format!("{SEVERAL} --watch-user w --lag-max 3s --watch-every 200ms");
    let rule = "[[gate.rule]]\nuser = \"reports\"\nserver = \"replica\"\n";
    let cluster = settings(&flags, rule).unwrap().cluster.unwrap();
    let servers: Vec<String> = cluster.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["db1:5432", "db2:5432"]);
    assert_eq!(cluster.lag_max, Duration::from_secs(3));
    assert_eq!(cluster.every, Duration::from_millis(200));
    assert_eq!(cluster.primary_wait_max, Duration::from_secs(30));
    let file = "[gate]\nupstream = \"unix:/run/a,b\"\n";
    assert_eq!(settings("postgres", file).unwrap().cluster, None);
    let http = settings("http --upstream a:80,b:80", "").unwrap();
    assert_eq!(http.cluster, None);
}

#[test]
fn what_does_not_go_with_several_servers_is_refused() {
    let watched = format!("{SEVERAL} --watch-user w");
    for (flags, place, told) in [
        (
            &*format!("{watched} --handover unix:/run/h"),
            "--handover:",
            "hands over sessions of one server, and there are 2",
        ),
        (
            "postgres --upstream a:1,b:2",
            "--upstream:",
            "take --pool transaction",
        ),
        (
            "postgres --upstream a:1,b:2 --pool session --pool-users u",
            "--upstream:",
            "take --pool transaction",
        ),
        (SEVERAL, "--upstream:", "Add --watch-user NAME"),
        (
            "mysql --upstream a:1,a:1 --pool transaction --pool-users u",
            "--upstream:",
            "stands there twice",
        ),
        (
            "postgres --upstream a:1, --pool transaction --pool-users u",
            "--upstream:",
            "is no HOST:PORT",
        ),
        (
            &format!("{watched} --monitor postgres://m@db3/postgres"),
            "--monitor:",
            "db3:5432 is none of the servers",
        ),
        (
            &format!("{watched} --watch-every 10ms"),
            "--watch-every:",
            "at least 50 ms",
        ),
        (
            &format!("{UPSTREAM} --lag-max 1s"),
            "--lag-max:",
            "there is one server",
        ),
        (
            "http --upstream a:80 --watch-user w",
            "--watch-user:",
            "means nothing",
        ),
    ] {
        let error = refused(flags, "");
        assert!(error.starts_with(place) && error.contains(told), "{error}");
    }
    let rule = "[gate]\n[[gate.rule]]\nuser = \"a\"\nserver = \"replica\"\n";
    let error = refused(UPSTREAM, rule);
    assert!(
        error.contains("rule 1: server: there is one server"),
        "{error}"
    );
    let strange = refused(
        &watched,
        "[gate]\n[[gate.rule]]\nuser = \"a\"\nserver = \"any\"\n",
    );
    assert!(strange.contains("`primary` or `replica`"), "{strange}");
}

#[test]
fn only_a_gate_of_mysql_without_a_pool_announces_clients() {
    let file = "[gate]\nsend-proxy = true\n";
    assert!(
        settings("mysql --upstream db:3306", file)
            .unwrap()
            .announces_clients
    );
    for (flags, told) in [
        (UPSTREAM, "--application-name-add-host"),
        ("http --upstream db:80", "means nothing to gate http"),
        (
            "mysql --upstream db:3306 --pool transaction --pool-users u",
            "is for many clients",
        ),
    ] {
        let error = settings(flags, file).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}
