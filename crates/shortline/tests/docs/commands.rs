//! Each command of the operators' pages runs. The blocks of a page run in its order, in one folder of their own
//! ([`Place`]), by a shell that ends at the first error.
//!
//! A comment before a block says what else is to be done with it:
//!
//! | comment | what is done |
//! |---|---|
//! | none | it is run to its end, and must succeed |
//! | `<!-- serves -->` | each of its commands is a server: it must listen, and runs until the page's end |
//! | `<!-- checked -->` | each of its commands is run with `--check`, which reads its whole configuration |
//! | `<!-- not run: REASON -->` | nothing. These are counted and printed |
//!
//! A block of TOML whose first line is `# /PATH` is the file of that name for the commands behind it.

use std::path::Path;
use std::process::Command;

use crate::page::{Block, Page, pages};
use crate::place::Place;
use crate::serving::Serving;

/// The least reason for which a command may be left out.
const REASON_MIN: usize = 10;

/// What came of a page's commands.
#[derive(Default)]
struct Outcome {
    run: usize,
    left_out: Vec<String>,
    failed: Vec<String>,
}

/// A page's commands, with what is running.
struct Shell {
    place: Place,
    serving: Vec<Serving>,
    outcome: Outcome,
}

impl Shell {
    /// One on a machine that has what an operator has: a site, a certificate, users, PgBouncer's configuration.
    fn new() -> Self {
        let place = Place::new();
        for folder in ["srv/www", "etc/shortline", "var/log", "tmp", "run"] {
            std::fs::create_dir_all(place.path(folder)).unwrap();
        }
        let mut place = place;
        let import = "[databases]\n* = host=127.0.0.1 port=5432\n[pgbouncer]\nlisten_port = 6432\npool_mode = transaction\n\
            auth_file = /etc/shortline/userlist.txt\n";
        let import = place.filled(import);
        let own = place.filled("[site]\nroot = \"/srv/www\"\n");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        place
            .with("srv/www/index.html", "<p>hello\n")
            .with("site.crt", made.cert.pem())
            .with("site.key", made.signing_key.serialize_pem())
            .with("etc/shortline/userlist.txt", "\"ann\" \"secret\"\n")
            .with("etc/shortline/users", "\"ann\" \"secret\"\n")
            .with("etc/pgbouncer/pgbouncer.ini", import)
            .with("etc/shortline/shortline.toml", own);
        Self {
            place,
            serving: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    /// A shell for `text`, with the program under test first in its path.
    fn shell(&mut self, text: &str) -> Command {
        let text = self.place.filled(text);
        let program = Path::new(env!("CARGO_BIN_EXE_shortline"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program.parent().unwrap().display());
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c"])
            .arg(text)
            .env("PATH", path);
        shell.current_dir(self.place.folder());
        shell
    }

    fn do_block(&mut self, block: &Block) {
        let mark = block.mark.as_deref().unwrap_or_default();
        match mark.split_once(": ") {
            Some(("not run", reason)) if reason.len() >= REASON_MIN => {
                self.outcome
                    .left_out
                    .push(format!("{}: {reason}", block.place));
                return;
            }
            _ => {}
        }
        self.outcome.run += 1;
        match mark {
            "serves" => {
                for command in commands(&block.text) {
                    let shell = self.shell(&format!("exec {command}"));
                    match Serving::start(shell) {
                        Ok(serving) => self.serving.push(serving),
                        Err(problem) => self.fail(block, &command, &problem),
                    }
                }
            }
            "checked" => {
                for command in commands(&block.text) {
                    self.run(block, &format!("{command} --check"));
                }
            }
            _ => self.run(block, &block.text),
        }
    }

    fn run(&mut self, block: &Block, text: &str) {
        let output = self.shell(text).output().unwrap();
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            self.fail(block, text, &String::from_utf8_lossy(&said));
        }
    }

    fn fail(&mut self, block: &Block, command: &str, said: &str) {
        let failed = format!("{}: {}\n{said}", block.place, command.trim());
        self.outcome.failed.push(failed);
    }

    fn do_page(&mut self, page: &Page) {
        for block in page.blocks() {
            let named = block
                .text
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("# /"));
            match (block.language.as_str(), named) {
                ("sh", _) => self.do_block(&block),
                ("toml", Some(path)) => {
                    let text = self.place.filled(&block.text);
                    self.place.with(path, text);
                }
                _ => {}
            }
        }
    }
}

/// The commands of a block, one a line or over lines that end with a backslash, without what a comment says.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| match line.split_once(" #") {
        Some((command, _)) => command.trim(),
        None => line.trim(),
    });
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn each_command_of_the_pages_runs() {
    let (mut run, mut left_out, mut failed) = (0, Vec::new(), Vec::new());
    for page in pages() {
        let mut shell = Shell::new();
        shell.do_page(&page);
        run += shell.outcome.run;
        left_out.append(&mut shell.outcome.left_out);
        failed.append(&mut shell.outcome.failed);
    }
    println!("{run} blocks of commands run, {} left out:", left_out.len());
    println!("{}", left_out.join("\n"));
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(
        run > left_out.len(),
        "most commands of the pages are left out"
    );
}

/// What a page's commands come to.
fn outcome(text: &str) -> Outcome {
    let page = Page {
        name: "a.md".into(),
        text: text.into(),
    };
    let mut shell = Shell::new();
    shell.do_page(&page);
    shell.outcome
}

#[test]
fn what_fails_is_told_with_its_place() {
    let wrong = outcome("# A\n\n```sh\necho lost >&2\nfalse\n```\n");
    assert!(
        wrong.failed[0].starts_with("a.md:3: echo lost"),
        "{:?}",
        wrong.failed
    );
    assert!(wrong.failed[0].ends_with("\nlost\n"), "{:?}", wrong.failed);
    let deaf =
        outcome("<!-- serves -->\n```sh\nshortline serve /srv/none --listen 127.0.0.1:80\n```\n");
    assert!(
        deaf.failed[0].contains("does not listen: "),
        "{:?}",
        deaf.failed
    );
    let unsound =
        outcome("<!-- checked -->\n```sh\nshortline serve /srv/www --uplink 10mbits # ten\n```\n");
    assert!(
        unsound.failed[0].contains("unknown unit"),
        "{:?}",
        unsound.failed
    );
}

#[test]
fn a_page_serves_to_its_own_commands() {
    let page = "```toml\n# /etc/a.toml\nlisten = [{ address = \"0.0.0.0:80\" }]\n[site]\nroot = \"/srv/www\"\n```\n\
        <!-- serves -->\n```sh\nshortline serve --config \\\n  /etc/a.toml\n```\n```sh\ncurl -sf http://localhost:80/\n```\n\
        <!-- not run: it would take an hour -->\n```sh\nfalse\n```\n<!-- not run: short -->\n```sh\ntrue\n```\n";
    let outcome = outcome(page);
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    assert_eq!(outcome.left_out, ["a.md:16: it would take an hour"]);
    assert_eq!(outcome.run, 3);
}
