//! Commands in a pipeline: `| head`, `-`, gzip, and logs as they are, with lines that are bad or
//! ask for no file.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Seek, Write};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

const DAY: &str = "0,/a,15000\n0,/b,10000\n0.01,/c,10000\n0.02,/d,10000\n";
/// Two requests for a file, five for none, two bad lines.
const LOG: &str = r#"h - - [01/Jul/1995:00:00:01 -0400] "GET /a HTTP/1.0" 200 15000
h - - [32/Jul/1995:00:00:01 -0400] "GET /a HTTP/1.0" 200 15000
h - - [01/Jul/1995:00:00:02 -0400] "GET /a HTTP/1.0" 304 0
h - - [01/Jul/1995:00:00:02 -0400] "HEAD /a HTTP/1.0" 200 0
h - - [01/Jul/1995:00:00:02 -0400] "HEAD /b HTTP/1.0" 200 0
h - - [01/Jul/1995:00:00:02 -0400] "GET /x HTTP/1.0" 404 120
h - - [01/Jul/1995:00:00:02 -0400] "GET /x HTTP/1.0" 503 120
garbage
h - - [01/Jul/1995:00:00:03 -0400] "GET /b HTTP/1.0" 200 10000
"#;

fn command(flags: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortline"));
    command.args(flags.split_whitespace());
    command
}

/// The command with these bytes in a pipe on its standard input.
fn piped(flags: &str, input: &[u8]) -> Output {
    let mut command = command(flags);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// What a command that succeeds prints and tells.
fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    (text(&output.stdout), told)
}

fn assert_refused(output: &Output, code: i32, part: &str) {
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("shortline: "), "{told}");
    assert!(told.contains(part), "{told}");
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_closed_pipe_is_no_error_and_no_panic() {
    let site = tempfile::tempdir().unwrap();
    let write_site = format!("load --surge --write-site {}", site.path().display());
    for flags in [
        "sim --workload w1 --seconds 1 --rate 10mbit",
        "sim --workload w1 --seconds 1 --rate 10mbit --json",
        "sim --workload w1 --seconds 1 --rate 10mbit --csv -",
        "sim --workload w1 --seconds 1 --rate 10mbit --plot -",
        "model --dist exp:1 --load 0.5",
        "model --dist exp:1 --load 0.5 --plot -",
        "lab list",
        "--help",
        "sim --help",
        "--version",
        &write_site,
    ] {
        let (nobody, closed) = std::io::pipe().unwrap();
        drop(nobody);
        let (_, told) = printed(&command(flags).stdout(closed).output().unwrap());
        assert!(!told.contains("pipe") && !told.contains("panic"), "{told}");
    }
}

#[test]
fn a_closed_standard_error_is_no_panic() {
    let (nobody, closed) = std::io::pipe().unwrap();
    drop(nobody);
    let mut command = command("sim --policy nonsense");
    let status = command.stderr(closed).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_trace_of_any_format_comes_from_a_pipe() {
    let world_cup: Vec<u8> = (0..10_000u32)
        .flat_map(|number| [898_000_000 + number / 100, 7, number, 1000, 0x0002_0304])
        .flat_map(u32::to_be_bytes)
        .collect();
    for (trace, requests) in [
        (DAY.as_bytes(), "4 requests"),
        (LOG.as_bytes(), "2 requests"),
        (&world_cup, "10000 requests"),
        (&packed(DAY), "4 requests"),
        (&packed(LOG), "2 requests"),
    ] {
        let (table, _) = printed(&piped("sim --trace - --rate 10mbit --policy fair", trace));
        let title = format!("standard input, 10mbit: {requests}");
        assert!(table.contains(&title), "{table}");
    }
    let sizes = "sim --dist trace:- --load 0.5 --rate 10mbit --jobs 1000 --policy fair";
    let (table, _) = printed(&piped(sizes, DAY.as_bytes()));
    assert!(table.contains("sizes of standard input"), "{table}");
    let bad = piped("sim --trace - --rate 10mbit", b"0,/a\n");
    assert_refused(&bad, 1, "standard input: line 1: `0,/a`");
}

#[test]
fn a_packed_trace_is_known_by_its_content_and_a_damaged_one_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.csv");
    let sim = || {
        let mut command = command("sim --rate 10mbit --policy fair --trace");
        command.arg(&file).output().unwrap()
    };
    // As `gzip` leaves rotated logs that were put together: one after another.
    let (first, rest) = DAY.split_at(11);
    let whole = [packed(first), packed(rest)].concat();
    std::fs::write(&file, &whole).unwrap();
    let (table, told) = printed(&sim());
    assert!(table.contains("4 requests") && told.is_empty(), "{table}");

    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    assert_refused(&sim(), 1, "day.csv: gzip is cut short");
    let mut damaged = packed(DAY);
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    assert_refused(&sim(), 1, "day.csv: gzip is damaged");
}

#[test]
fn what_is_packed_a_thousandfold_is_not_held_in_memory() {
    // A line of a gigabyte, in an address space of half of one.
    let mut file = tempfile::tempfile().unwrap();
    let mut packed = GzEncoder::new(&mut file, Compression::fast());
    packed.write_all(b"0,/a,1\n").unwrap();
    std::io::copy(&mut std::io::repeat(b'a').take(1 << 30), &mut packed).unwrap();
    packed.finish().unwrap();
    file.rewind().unwrap();
    let flags = "--trace - --rate 10mbit --policy fair --no-stretch";
    let limited = format!(
        "ulimit -v 524288; exec {} sim {flags}",
        env!("CARGO_BIN_EXE_shortline")
    );
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &limited]).stdin(file).output().unwrap();
    assert!(printed(&output).0.contains("1 request"));
}

#[test]
fn csv_and_drawing_go_to_standard_output_and_the_table_beside_it() {
    let sim = "sim --trace - --rate 10mbit --policy fair";
    let (csv, table) = printed(&piped(&format!("{sim} --csv -"), DAY.as_bytes()));
    assert!(csv.starts_with("policy,by,from,to,"), "{csv}");
    let nines = csv.lines().all(|line| line.matches(',').count() == 9);
    assert!(nines, "{csv}");
    assert!(table.contains("4 requests"), "{table}");
    let (svg, table) = printed(&piped(&format!("{sim} --plot -"), DAY.as_bytes()));
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(table.contains("4 requests"), "{table}");
    for (flags, part) in [
        (
            "--json --csv -",
            "--json and --csv -: both on standard output",
        ),
        ("--csv - --plot -", "--csv - and --plot -: both"),
    ] {
        let output = command(&format!("{sim} {flags}")).output().unwrap();
        assert_refused(&output, 2, part);
    }
}

#[test]
fn a_bad_line_of_a_log_costs_that_line_and_not_the_run() {
    let (table, told) = printed(&piped("sim --trace - --rate 10mbit", LOG.as_bytes()));
    assert!(table.contains("2 requests"), "{table}");
    let bad = "standard input: 2 lines could not be read; the first: line 2: time \
               `32/Jul/1995:00:00:01 -0400`: want [day/Mon/year:hour:minute:second +hhmm]";
    // Before it stand the time and the level.
    assert!(told.lines().next().unwrap().ends_with(bad), "{told}");
    // A line of any length is one.
    let long = format!("0,/{},1\n0,/b,1\nNaN,/c,1\n", "a".repeat(100_000));
    let (table, told) = printed(&piped("sim --trace - --rate 10mbit", long.as_bytes()));
    assert!(table.contains("1 request"), "{table}");
    assert!(
        told.contains("2 lines could not be read; the first: line 1: longer than"),
        "{told}"
    );
}

#[test]
fn what_a_log_drops_is_counted_by_kind() {
    let (_, told) = printed(&piped("sim --trace - --rate 10mbit", LOG.as_bytes()));
    let kinds = "standard input: 5 lines left out that are no GET answered 200: 2 HEAD, 1 not \
                 modified (304), 1 errors 4xx, 1 errors 5xx";
    assert!(told.lines().nth(1).unwrap().ends_with(kinds), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
}

#[test]
fn a_log_whose_end_is_cut_off_is_read_up_to_there() {
    let cut = &DAY[..DAY.len() - 7];
    let (table, told) = printed(&piped("sim --trace - --rate 10mbit", cut.as_bytes()));
    assert!(table.contains("3 requests"), "{table}");
    assert!(told.contains("1 line could not be read"), "{told}");
    let records: Vec<u8> = [898_000_000u32, 7, 1, 1000, 0x0002_0304, 898_000_001]
        .into_iter()
        .flat_map(u32::to_be_bytes)
        .collect();
    let (table, told) = printed(&piped("sim --trace - --rate 10mbit", &records));
    assert!(table.contains("1 request"), "{table}");
    let first = "1 record could not be read; the first: record 2: cut short after 4 of 20 bytes";
    assert!(told.contains(first), "{told}");
}
