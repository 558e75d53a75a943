//! The meaning of a study's file, and the errors of wrong ones.

#![allow(clippy::unwrap_used)]
use std::path::Path;

use proptest::prelude::*;
use shortline_sched::units::Rate;

use super::*;
use crate::papers::catalogue::{FILES, text_of};
use crate::study::course::Neighbour;
use crate::study::point::{Arrivals, Files, Point};

mod claims;

/// A valid study, from which the others are made.
const GOOD: &str = "servers = [\"srpt\", \"nginx\"]\n[setup]\nschedule = \"w1\"\ntime = \"10s\"\n";

pub fn parsed(text: &str) -> Result<Experiment, StudyError> {
    parse(Path::new("mine.toml"), "mine", text, Traces::AsWritten)
}

fn design(text: &str) -> Design {
    match parsed(text).unwrap().kind {
        Kind::Uplink(design) => design,
        other => panic!("{other:?}"),
    }
}

fn error_of(text: &str) -> String {
    let error = parsed(text).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

/// Checks that the error begins with the place and the key, and says what would be right.
pub fn assert_refused(text: &str, begin: &str, right: &str) {
    let error = error_of(text);
    assert!(error.starts_with(&format!("mine.toml:{begin}")), "{error}");
    assert!(error.contains(right), "{error}");
}

#[test]
fn the_shortest_study_is_one_point_called_as_its_file() {
    let experiment = parsed(GOOD).unwrap();
    assert_eq!(experiment.id, "mine");
    assert_eq!(experiment.figures.len(), 1);
    assert_eq!(experiment.figures[0].claim, "the study mine");
    assert_eq!(experiment.figures[0].shows.len(), 6);
    let Design {
        axis,
        points,
        servers,
        seeds,
    } = design(GOOD);
    assert_eq!((axis.as_str(), servers.len(), seeds), ("", 2, 1));
    let expected = Point::new("mine", Arrivals::table_one("w1"), 10);
    assert_eq!(points, [expected]);
}

#[test]
fn points_have_what_the_setup_says_and_they_do_not() {
    let points = design(
        "servers = [\"srpt\"]\npoint = [\n{ label = \"a\", x = 1, rtt = \"50ms\" },\n\
         { label = \"b\", x = 2, rate = \"50mbit\", tls = true },\n]\n\
         [setup]\nschedule = \"1.2\"\ntime = \"10s\"\nrate = \"20mbit\"\nloss = 0.05\n\
         environment = \"h\"\nretries = 1\n",
    )
    .points;
    let [a, b] = &points[..] else {
        panic!("{points:?}");
    };
    assert_eq!((a.x, b.x), (Some(1.0), Some(2.0)));
    assert_eq!(a.rate, Rate::from_bps(20_000_000));
    assert_eq!(b.rate, Rate::from_bps(50_000_000));
    let down = |point: &Point| point.setup.environment.groups[0].down.clone();
    assert_eq!(down(a).delay.duration().as_millis(), 25);
    assert!(down(b).delay.duration().is_zero());
    assert_eq!(down(a).loss, down(b).loss);
    assert_eq!(
        (a.setup.per_request_bytes, b.setup.per_request_bytes),
        (460, 1950)
    );
    for point in [a, b] {
        assert_eq!(point.arrivals, Arrivals::steady(1.2));
        let abort = point.setup.environment.abort.unwrap();
        assert_eq!((abort.after.duration().as_secs(), abort.retries), (10, 1));
    }
}

#[test]
fn a_course_is_kept_as_shares_of_the_run_and_of_the_rate() {
    let text = format!(
        "{GOOD}steps = [{{ at = \"5s\", rate = \"20mbit\" }}]\n\
         downloads = {{ number = 3, from = \"1s\", to = \"6s\" }}\n"
    );
    let course = design(&text).points[0].setup.course.clone();
    assert_eq!((course.steps[0].at, course.steps[0].factor), (0.5, 2.0));
    let downloads = Neighbour::Downloads {
        number: 3,
        from: 0.1,
        to: 0.6,
    };
    assert_eq!(course.neighbour, Some(downloads));
    let twin = design(&format!("{GOOD}twin = true\n"));
    assert_eq!(twin.points[0].setup.course.neighbour, Some(Neighbour::Twin));
}

#[test]
fn a_trace_is_found_from_the_folder_of_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = folder.join("mine.toml");
    let text = "servers = [\"srpt\"]\n\n[setup]\ntrace = \"a.log\"\ntime = \"10s\"\n";
    fs::write(&file, text).unwrap();
    let error = read(&file, |id| text_of(id).is_some())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("mine.toml:4: setup.trace: ") && error.contains("a.log"),
        "{error}"
    );
    fs::write(folder.join("a.log"), "0,/a,1\n").unwrap();
    let (experiment, kept) = read(&file, |id| text_of(id).is_some()).unwrap();
    assert_eq!((experiment.id.as_str(), kept.as_str()), ("mine", text));
    let Kind::Uplink(design) = experiment.kind else {
        panic!("{:?}", experiment.kind);
    };
    let full = fs::canonicalize(folder.join("a.log")).unwrap();
    assert_eq!(design.points[0].arrivals, Arrivals::Trace(full));
}

#[test]
fn a_file_that_cannot_be_a_study_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: Option<&str>| {
        let file = folder.path().join(name);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        read(&file, |id| text_of(id).is_some())
            .unwrap_err()
            .to_string()
    };
    let error = refused("none.toml", None);
    assert!(
        error.contains("none.toml: No such file") && error.contains("lab show"),
        "{error}"
    );
    let error = refused("My Study.toml", Some(GOOD));
    assert!(error.contains("want a name of a-z"), "{error}");
    let error = refused("w1.toml", Some(GOOD));
    assert!(
        error.ends_with("has a study `w1`: want a file of another name"),
        "{error}"
    );
    let large = "#".repeat(FILE_BYTES_MAX as usize + 1);
    let error = refused("large.toml", Some(&large));
    assert!(error.contains("1048577 bytes: want"), "{error}");
}

#[test]
fn what_is_no_toml_or_no_key_is_told_with_its_line() {
    assert_refused("servers = \n", "1: ", "expected");
    assert_refused(
        &format!("{GOOD}rtts = \"5ms\"\n"),
        "5: setup.rtts: ",
        "`rtt`",
    );
    assert_refused(&format!("server = 1\n{GOOD}"), "1: server: ", "`servers`");
    assert_refused(
        &format!("{GOOD}tls = \"yes\"\n"),
        "5: setup.tls: ",
        "expected a boolean",
    );
    assert_refused(&format!("{GOOD}rate = 10\n"), "5: setup.rate: ", "10mbit");
    assert_refused(
        "[setup]\ntime = \"1s\"\nschedule = \"1\"\n",
        "1: ",
        "`servers` is missing",
    );
    let figure = format!("{GOOD}[[figure]]\nname = \"Fig. 1\"\n");
    assert_refused(&figure, "5: figure: ", "`claim` is missing");
}

/// A line after a valid study, the beginning of the error, and a part of it.
const ADDED: &[(&str, &str, &str)] = &[
    ("rate = \"none\"", "5: setup.rate: rate `none`", "10mbit"),
    ("rate = \"0mbit\"", "5: setup.rate: rate `0mbit`", "10mbit"),
    ("users = 5", "5: setup.users: ", "want one of schedule"),
    ("trace = \"a\"", "5: setup.trace: ", "want one of schedule"),
    (
        "label = \"a\"",
        "5: setup.label: ",
        "want it in a [[point]]",
    ),
    ("x = 1", "5: setup.x: ", "want it in a [[point]]"),
    ("files = \"apache\"", "5: setup.files: ", "`world-cup`"),
    (
        "environment = \"z\"",
        "5: setup.environment: ",
        "want one of today, a,",
    ),
    ("loss = 2", "5: setup.loss: ", "want 0 to 1"),
    (
        "packet-bytes = 9",
        "5: setup.packet-bytes: ",
        "want 536 to 1500",
    ),
    ("syn-queue = 0", "5: setup.syn-queue: ", "want 1 to 65535"),
    ("retries = 2", "5: setup.retries: ", "want abort-after"),
    (
        "requests-per-connection = 0",
        "5: setup.requests-per-connection: ",
        "want 1 to",
    ),
    ("generators = 0", "5: setup.generators: ", "want 1 to 64"),
    (
        "drain = \"1500ms\"",
        "5: setup.drain: ",
        "want whole seconds",
    ),
    ("groups = []", "5: setup.groups: ", "want 1 to 200"),
    (
        "steps = [{ at = \"11s\", rate = \"1mbit\" }]",
        "5: setup.steps.at: ",
        "want at most",
    ),
    (
        "downloads = { number = 1, from = \"5s\", to = \"5s\" }",
        "5: setup.downloads.to: ",
        "want a later time",
    ),
];

/// Text of a valid study, its replacement, the beginning of the error, and a part of it.
const REPLACED: &[(&str, &str, &str, &str)] = &[
    (
        "10s",
        "0s",
        "4: setup.time: ",
        "want whole seconds, 1s to 3600s",
    ),
    ("10s", "2h", "4: setup.time: ", "want whole seconds"),
    ("w1", "w11", "3: setup.schedule: ", "write it like w1"),
    (
        "w1",
        "1s@1,1s@2,1s@3",
        "3: setup.schedule: ",
        "want one or two",
    ),
    (
        "w1",
        "5s@1.4,5s@0.2",
        "3: setup.schedule: ",
        "want the lower load first",
    ),
    (
        "nginx",
        "iis",
        "1: servers: unknown server `iis`",
        "want nginx",
    ),
    (
        "nginx",
        "srpt",
        "1: servers: `srpt` for the second time",
        "want each server once",
    ),
    (
        "schedule = \"w1\"",
        "schedule = \"w1\"\nhttp3 = true",
        "1: servers: `nginx` at a point with http3",
        "want our server's modes alone",
    ),
    (
        "\"srpt\", \"nginx\"",
        "",
        "1: servers: no server",
        "want the servers",
    ),
    (
        "schedule = \"w1\"",
        "users = 9",
        "2: setup: users of world-cup",
        "surge-001",
    ),
    (
        "schedule = \"w1\"",
        "",
        "2: setup: nothing says when",
        "want one of schedule",
    ),
    (
        "time = \"10s\"",
        "",
        "2: setup: `time` is missing",
        "want whole seconds",
    ),
];

#[test]
fn a_wrong_value_is_told_with_its_line_its_key_and_what_would_be_right() {
    for (added, begin, right) in ADDED {
        assert_refused(&format!("{GOOD}{added}\n"), begin, right);
    }
    for (from, to, begin, right) in REPLACED {
        assert_refused(&GOOD.replace(from, to), begin, right);
    }
}

#[test]
fn points_are_told_apart() {
    let with = |points: &str| format!("point = [\n{points}]\n{GOOD}");
    let twice = with("{ label = \"a\" },\n{ label = \"a\" },\n");
    assert_refused(&twice, "3: point", "want a label of its own");
    let unnamed = with("{ label = \"a\" },\n{ x = 2 },\n");
    assert_refused(&unnamed, "3: point", "`label` is missing: want a-z");
    for label in ["../a", "A b", ".", ""] {
        let named = with(&format!("{{ label = \"{label}\" }},\n"));
        assert_refused(&named, "2: point.label: ", "want a-z");
    }
}

#[test]
fn keys_of_another_kind_of_study_are_refused() {
    let text = format!("kind = \"memory\"\n{GOOD}");
    assert_refused(
        &text,
        "2: servers: is of a study of kind uplink",
        "one of memory",
    );
    assert_refused("kind = \"speed\"\n", "1: kind: ", "`throughput`");
    let attack = "kind = \"adversary\"\nsurface = \"quic\"\n";
    assert_refused(attack, "2: surface: ", "`route`");
    assert_refused("kind = \"bookstore\"\n", "1: ", "`stage` is missing");
}

#[test]
fn a_load_that_a_study_needs_is_a_share_of_the_link() {
    let point = |keys: &str| design(&format!("{GOOD}{keys}\n")).points[0].clone();
    assert_eq!(point("least-load = 1").setup.least_load, Some(1.0));
    for wrong in ["0", "-1", "101", "nan"] {
        let text = format!("{GOOD}least-load = {wrong}\n");
        let right = "want a load above 0 and up to 100, where 1 is the whole link";
        assert!(
            error_of(&text).contains(right),
            "{wrong}: {}",
            error_of(&text)
        );
    }
    let rate = format!("{GOOD}user-rate = \"33600bit\"\n");
    assert!(
        error_of(&rate).contains("want users, too"),
        "{}",
        error_of(&rate)
    );
}

#[test]
fn sites_have_the_names_of_the_command_line() {
    for files in ["surge-001", "surge-003", "surge-004", "nasa", "world-cup"] {
        let text = format!("{GOOD}files = \"{files}\"\n");
        assert_eq!(design(&text).points[0].files.name(), files);
    }
    let earlier: Files = serde_json::from_str("\"surge001\"").unwrap();
    assert_eq!(earlier, Files::Surge001);
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = parsed(&text);
    }

    #[test]
    fn no_change_of_a_file_of_the_catalogue_panics(
        file in 0..FILES.len(),
        at in any::<prop::sample::Index>(),
        cut in 0..40usize,
        put in "[a-z0-9\"=,.\\[\\]{}@\n -]{0,12}",
    ) {
        let text = FILES[file].text;
        let begin = text.char_indices().nth(at.index(text.chars().count())).unwrap().0;
        let end = (begin + cut..=text.len()).find(|end| text.is_char_boundary(*end));
        let changed = format!("{}{put}{}", &text[..begin], &text[end.unwrap_or(text.len())..]);
        let error = parsed(&changed).err().map(|error| error.to_string());
        prop_assert!(error.is_none_or(|error| error.starts_with("mine.toml:")));
    }
}

#[test]
fn a_study_of_memory_has_as_many_idle_connections_as_it_says() {
    let connections = |text: &str| match parsed(text).unwrap().kind {
        Kind::Memory(memory) => memory.connections,
        other => panic!("{other:?}"),
    };
    let study = "kind = \"memory\"\n";
    assert_eq!(connections(study), 10_000);
    assert_eq!(
        connections(&format!("{study}connections = 100_000\n")),
        100_000
    );
    let none = format!("{study}connections = 0\n");
    assert_refused(&none, "2: connections: 0", "1 to 500000");
    let elsewhere = format!("connections = 5\n{GOOD}");
    assert_refused(&elsewhere, "1: connections", "of kind memory");
}
