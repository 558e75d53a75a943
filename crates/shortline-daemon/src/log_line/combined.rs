//! One access log line: Combined Log Format, followed by this server's own times.
//!
//! ```text
//! 192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl/8" wait=0.003 send=0.120 complete=1
//! ```
//!
//! `wait` is the time from the complete request to the first grant. `send` is the time from there
//! until the last byte was handed over. Both are in seconds. `complete` is 0 if a response ended
//! early. Nothing a client sends can begin a line or end a quoted field: quotes, backslashes,
//! control characters and bytes beyond ASCII are written as `\xHH`.

use std::fmt::Write;

use shortline_web::AccessRecord;

use super::request_field;
use super::text::{common_time, escape};

/// Appends the line of one response, with its line break.
pub fn write_line(line: &mut String, record: &AccessRecord) {
    // Writing to a String cannot fail.
    let _ = write!(line, "{} - ", record.peer);
    write_user(line, record.user.as_deref());
    let _ = write!(line, " [{}] \"", common_time(record.time));
    escape(line, record.method.as_bytes());
    line.push(' ');
    escape(line, record.target.as_bytes());
    let _ = write!(
        line,
        " {}\" {} {} ",
        record.version, record.status, record.body_bytes
    );
    write_quoted(line, request_field(record, 0));
    line.push(' ');
    write_quoted(line, request_field(record, 1));
    let _ = writeln!(
        line,
        " wait={:.6} send={:.6} complete={}",
        record.wait.as_secs_f64(),
        record.send.as_secs_f64(),
        u8::from(record.complete)
    );
}

/// A user whose name has a space or a bracket could pretend to be the fields after it, so these are escaped, too.
fn write_user(line: &mut String, user: Option<&[u8]>) {
    let Some(user) = user.filter(|user| !user.is_empty()) else {
        line.push('-');
        return;
    };
    for byte in user {
        match byte {
            b' ' | b'[' | b']' => {
                let _ = write!(line, "\\x{byte:02X}");
            }
            byte => escape(line, &[*byte]),
        }
    }
}

fn write_quoted(line: &mut String, text: Option<&[u8]>) {
    line.push('"');
    match text {
        None | Some(b"") => line.push('-'),
        Some(text) => escape(line, text),
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;

    fn line_of(record: &AccessRecord) -> String {
        let mut line = String::new();
        write_line(&mut line, record);
        line
    }

    #[test]
    fn a_line_is_combined_log_format_with_times() {
        assert_eq!(
            line_of(&record()),
            "192.0.2.7 - - [29/Feb/2000:12:34:56 +0000] \"GET /a?b HTTP/1.1\" 200 512 \"-\" \"curl/8\" \
             wait=0.003000 send=0.120000 complete=1\n"
        );
    }

    #[test]
    fn nothing_a_client_sends_forges_a_line_or_a_field() {
        let evil = "\" 200 1 \"-\"\r\n1.2.3.4 - - \\ \u{1b}[2J é\u{2028}";
        let mut record = AccessRecord {
            user: Some(evil.into()),
            method: evil.to_owned(),
            target: evil.to_owned(),
            complete: false,
            ..record()
        };
        record.fields.request = vec![Some(evil.into()), Some(evil.into())];
        let line = line_of(&record);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6);
        assert!(
            line.bytes()
                .all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte))
        );
        assert_eq!(
            line.split(' ').position(|word| word.starts_with('[')),
            Some(3)
        );
        assert!(line.ends_with("complete=0\n"));
    }
}
