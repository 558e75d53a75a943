//! What is to be typed instead of a word of another program: nginx, Caddy, HAProxy, PgBouncer, development servers, load
//! generators.
//!
//! None of these words is taken: the answer says which of ours it is. tests/mistakes has them as people type them.

use shortline_command::Unknown;

const SERVE_FOLDER: &str = "the folder stands alone: shortline serve FOLDER";
const LISTEN: &str = "write --listen :8080, or --listen 127.0.0.1:8080 for this machine alone";
const ROUTE: &str =
    "a server behind this one is `upstream` of a [[route]] in the file that --config names";
const CHECK: &str = "shortline serve --config FILE --check";
const RELOAD: &str =
    "a running server reads its files again at SIGHUP: systemctl reload shortline, or kill -HUP";
const TLS: &str =
    "write --tls-auto NAME for certificates by themselves, or --tls-cert FILE and --tls-key FILE";
const SYSTEMD: &str = "it stays in the foreground, and systemd starts it: packaging/ has units";
const USER: &str = "systemd starts it as a user without rights: User= or DynamicUser= of its unit";
const UPLINK: &str = "write --uplink 100mbit, or leave it out, and the rate is found out";
const TIMES: &str =
    "there is a limit for each: --idle-time-max, --stall-time-max, --header-time-max, such as 60s";
const THREADS: &str = "leave it out: there is a thread for each processor";
const LOG: &str =
    "warnings go to standard error in any case; --access-log FILE has a line for each response";
const IMPORT: &str = "shortline gate import pgbouncer.ini prints a file for --config";

/// A word, and what is to be written.
type Words = &'static [(&'static str, &'static str)];

/// Where a command should stand.
const COMMANDS: Words = &[
    ("run", "shortline serve --config FILE"),
    (
        "start",
        "shortline serve starts it, and stays in the foreground; a service is started by systemctl start shortline",
    ),
    ("stop", "send SIGTERM: systemctl stop shortline, or kill"),
    (
        "restart",
        "systemctl restart shortline; --handover takes the running server's place without a refused connection",
    ),
    ("reload", RELOAD),
    (
        "upgrade",
        "--handover unix:PATH takes the running server's place",
    ),
    ("validate", CHECK),
    ("check", CHECK),
    ("test", CHECK),
    (
        "adapt",
        "docs/moving.md has configurations of nginx and Caddy beside ours",
    ),
    ("file-server", SERVE_FOLDER),
    ("server", "shortline serve FOLDER"),
    ("reverse-proxy", ROUTE),
    ("proxy", ROUTE),
    (
        "respond",
        "`respond` of a [[site.rule]] in the file that --config names",
    ),
    ("version", "shortline --version"),
    ("postgres", "shortline gate postgres"),
    ("postgresql", "shortline gate postgres"),
    ("mysql", "shortline gate mysql"),
    ("pgbouncer", "shortline gate postgres --pool transaction"),
    ("simulate", "shortline sim, or shortline lab simulate"),
    (
        "--config",
        "shortline serve --config FILE, or shortline gate KIND --config FILE",
    ),
    ("-c", "shortline serve --config FILE"),
    ("-t", CHECK),
    ("-T", CHECK),
    ("-v", "shortline --version"),
    ("-s", RELOAD),
    ("-d", SYSTEMD),
    ("-f", "shortline serve --config FILE"),
    ("-p", "shortline serve FOLDER --listen :8080"),
    ("--port", "shortline serve FOLDER --listen :8080"),
    ("--listen", "shortline serve FOLDER --listen :8080"),
];

/// Flags of `serve`.
const SERVE: Words = &[
    ("--port", LISTEN),
    ("-p", LISTEN),
    ("--address", LISTEN),
    ("--addr", LISTEN),
    ("--bind", LISTEN),
    ("-b", LISTEN),
    ("-l", LISTEN),
    ("--host", "write --listen 0.0.0.0:8080"),
    ("--root", SERVE_FOLDER),
    ("-r", SERVE_FOLDER),
    ("--dir", SERVE_FOLDER),
    ("--directory", SERVE_FOLDER),
    ("--folder", SERVE_FOLDER),
    ("-d", SERVE_FOLDER),
    ("-c", "write --config FILE"),
    ("-f", "write --config FILE"),
    ("-t", "write --check"),
    ("--test", "write --check"),
    ("--validate", "write --check"),
    ("-s", RELOAD),
    ("--cert", "write --tls-cert FILE and --tls-key FILE"),
    ("--key", "write --tls-cert FILE and --tls-key FILE"),
    ("--tls", TLS),
    ("--ssl", TLS),
    ("--https", TLS),
    (
        "--domain",
        "write --tls-auto NAME, which also answers for the name",
    ),
    (
        "--http2",
        "leave it out: HTTP/2 is on for every address that speaks TLS",
    ),
    ("--browse", "write --listing"),
    ("--autoindex", "write --listing"),
    (
        "--gzip",
        "files are compressed by themselves; --compress all is for responses of backends, too",
    ),
    (
        "--spa",
        "write try-files = [\"{path}\", \"/index.html\"] into a [[site.rule]] of the file",
    ),
    (
        "--cors",
        "write a [site.rule.cors] into the file that --config names",
    ),
    ("--proxy", ROUTE),
    ("--upstream", ROUTE),
    ("--backend", ROUTE),
    ("--to", ROUTE),
    ("--workers", THREADS),
    ("--threads", THREADS),
    ("--user", USER),
    ("--group", USER),
    ("--daemon", SYSTEMD),
    ("--background", SYSTEMD),
    ("-D", SYSTEMD),
    ("--log", "write --access-log FILE"),
    ("--log-level", LOG),
    ("--verbose", LOG),
    ("-v", LOG),
    ("--quiet", LOG),
    (
        "--metrics",
        "write --admin 127.0.0.1:9180, which has /metrics, /status and a live page",
    ),
    ("--rate", UPLINK),
    ("--bandwidth", UPLINK),
    ("--timeout", TIMES),
    (
        "--cache",
        "files are cached by themselves: --cache-size-max SIZE bounds it",
    ),
];

/// Flags of `gate`.
const GATE: Words = &[
    ("--port", "write --listen :6432"),
    ("-p", "write --listen :6432"),
    ("--bind", "write --listen :6432"),
    ("--backend", "write --upstream HOST:PORT"),
    ("--server", "write --upstream HOST:PORT"),
    ("--host", "write --upstream HOST:PORT"),
    (
        "<KIND>",
        "what the backend speaks, postgres, mysql or http: shortline gate postgres",
    ),
    (
        "--database",
        "it is the client's: the gate takes every database that the client names",
    ),
    (
        "--dbname",
        "it is the client's: the gate takes every database that the client names",
    ),
    (
        "--pool-mode",
        "write --pool transaction, --pool session or --pool off",
    ),
    ("--default-pool-size", "write --pool-size N"),
    ("--max-client-conn", "write --connections-max N"),
    ("--max-connections", "write --connections-max N"),
    ("--auth-file", "write --pool-users FILE"),
    ("--userlist", "write --pool-users FILE"),
    ("--query-wait-timeout", "write --wait-max TIME"),
    ("-c", "write --config FILE"),
    ("-f", "write --config FILE"),
    ("-d", SYSTEMD),
    ("--daemon", SYSTEMD),
    ("-u", USER),
    ("--user", USER),
    (
        "-R",
        "--handover unix:PATH takes the running gate's place with its clients",
    ),
    (
        "-v",
        "warnings go to standard error in any case; --log-format json is for programs",
    ),
    (
        "--log-level",
        "warnings go to standard error in any case; --log-format json is for programs",
    ),
];

/// Flags of `load`.
const LOAD: Words = &[
    (
        "--target <URL>",
        "the server: --target http://127.0.0.1:8080",
    ),
    ("--url", "write --target URL"),
    ("--host", "write --target URL"),
    (
        "-c",
        "write --users N for users who wait for their answers; a trace or --surge decides by itself how many are at work",
    ),
    (
        "-n",
        "write --seconds N: a trace, --surge or --twin say which requests",
    ),
    ("-d", "write --seconds N"),
    ("-z", "write --seconds N"),
    ("--duration", "write --seconds N"),
    (
        "--rps",
        "the load is a part of the uplink: --surge --schedule 0.9 --uplink 100mbit",
    ),
    (
        "-r",
        "the load is a part of the uplink: --surge --schedule 0.9 --uplink 100mbit",
    ),
    ("-k", "write --requests-per-connection N"),
    (
        "--requests",
        "write --seconds N: a trace, --surge or --twin say which requests",
    ),
];

/// What is to be written.
pub fn meant(unknown: Unknown<'_>) -> Option<String> {
    let of_table = |words: Words| {
        let known = words.iter().find(|(word, _)| *word == unknown.word);
        known.map(|(_, meant)| (*meant).to_owned())
    };
    match unknown.command {
        "" => of_table(COMMANDS).or_else(|| file_or_folder(unknown.word)),
        "serve" => of_table(SERVE).or_else(|| surplus(unknown.word)),
        "gate" => of_table(GATE).or_else(|| gate_word(unknown.word)),
        "load" => of_table(LOAD).or_else(|| load_word(unknown.word)),
        "sim" => trace(unknown.word),
        "gain" => gain_word(unknown.word),
        "uplink" => uplink_command(unknown.word),
        "uplink install" | "uplink show" | "uplink remove" => device(unknown.word),
        _ => None,
    }
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-')
}

/// A command was expected.
fn file_or_folder(word: &str) -> Option<String> {
    let word = shown(word)?;
    if word.ends_with(".toml") {
        return Some(format!("shortline serve --config {word}"));
    }
    if word.ends_with(".ini") {
        return Some(format!("shortline gate import {word}"));
    }
    let is_path = word.contains('/') || word == "." || std::path::Path::new(&word).is_dir();
    is_path.then(|| format!("shortline serve FOLDER: shortline serve {word}"))
}

/// A second word where one folder stands.
fn surplus(word: &str) -> Option<String> {
    (!is_flag(word)).then(|| {
        "there is one folder; several sites are [[site]] of the file that --config names".to_owned()
    })
}

fn gate_word(word: &str) -> Option<String> {
    let word = shown(word)?;
    if word.ends_with(".ini") || word.ends_with(".cfg") {
        return Some(format!(
            "shortline gate import {word} prints a file for --config"
        ));
    }
    if word.ends_with(".toml") {
        return Some(format!("write --config {word}"));
    }
    if word.contains(':') {
        return Some(format!("write --upstream {word}"));
    }
    (word == "pgbouncer").then(|| IMPORT.to_owned())
}

fn load_word(word: &str) -> Option<String> {
    let word = shown(word)?;
    let is_url = word.contains("://") || word.contains(':');
    is_url.then(|| format!("write --target {word}"))
}

fn trace(word: &str) -> Option<String> {
    if word == "--rate <RATE>" {
        return Some("the link's rate, such as --rate 10mbit".to_owned());
    }
    shown(word).map(|word| format!("write --trace {word}"))
}

fn gain_word(word: &str) -> Option<String> {
    if word.starts_with("<LOG>") {
        return Some("an access log: shortline gain /var/log/nginx/access.log*".to_owned());
    }
    let is_file = ["--log", "--trace", "--file", "-f", "-i"].contains(&word);
    is_file.then(|| "the logs stand alone: shortline gain LOG...".to_owned())
}

fn uplink_command(word: &str) -> Option<String> {
    match word {
        "status" | "list" | "get" => Some("shortline uplink show --dev DEVICE".to_owned()),
        "add" | "set" | "create" => {
            Some("shortline uplink install --dev DEVICE --rate 100mbit".to_owned())
        }
        "delete" | "del" | "uninstall" => Some("shortline uplink remove --dev DEVICE".to_owned()),
        _ => None,
    }
}

fn device(word: &str) -> Option<String> {
    if word == "--dev <DEVICE>" {
        return Some("the interface, such as eth0: `ip link` lists them".to_owned());
    }
    shown(word).map(|word| format!("write --dev {word}"))
}

/// A word that is no flag, short enough to be repeated.
fn shown(word: &str) -> Option<String> {
    let is_short = word.len() <= 80 && word.chars().all(|character| !character.is_control());
    (!is_flag(word) && is_short).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A word that we have is not another program's, and a flag that an answer names is ours.
    #[test]
    fn the_tables_fit_the_flags() {
        let cli = crate::Cli::command();
        let flags = |command: &str| -> Vec<String> {
            let command = cli.find_subcommand(command);
            let flags = command.into_iter().flat_map(clap::Command::get_arguments);
            flags
                .filter_map(clap::Arg::get_long)
                .map(|flag| format!("--{flag}"))
                .collect()
        };
        for (command, words) in [("serve", SERVE), ("gate", GATE), ("load", LOAD)] {
            let known = flags(command);
            for (word, meant) in words {
                assert!(!known.iter().any(|known| known == word), "{command} {word}");
                let named = meant.split(|c: char| c.is_whitespace() || c == ',' || c == ':');
                for flag in named.filter(|word| word.starts_with("--")) {
                    let flag = flag.trim_end_matches([',', '.', ':', ';']);
                    assert!(
                        known.iter().any(|known| known == flag) || flag == "--config",
                        "{command} {word}: {flag}"
                    );
                }
            }
        }
    }
}
