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
use std::time::SystemTime;

use shortline_web::AccessRecord;

/// Appends the line of one response, with its line break.
pub fn write_line(line: &mut String, record: &AccessRecord) {
    // Writing to a String cannot fail.
    let _ = write!(line, "{} - - [", record.peer);
    write_time(line, record.time);
    line.push_str("] \"");
    escape(line, &record.method);
    line.push(' ');
    escape(line, &record.target);
    let _ = write!(
        line,
        " {}\" {} {} ",
        record.version, record.status, record.body_bytes
    );
    write_quoted(line, record.referer.as_deref());
    line.push(' ');
    write_quoted(line, record.user_agent.as_deref());
    let _ = writeln!(
        line,
        " wait={:.6} send={:.6} complete={}",
        record.wait.as_secs_f64(),
        record.send.as_secs_f64(),
        u8::from(record.complete)
    );
}

fn write_quoted(line: &mut String, text: Option<&str>) {
    line.push('"');
    match text {
        None | Some("") => line.push('-'),
        Some(text) => escape(line, text),
    }
    line.push('"');
}

/// `21/Nov/2026:10:00:00 +0000`, from the HTTP date of the same moment: `Sat, 21 Nov 2026 10:00:00
/// GMT`, whose fields have fixed places.
fn write_time(line: &mut String, time: SystemTime) {
    let http = httpdate::fmt_http_date(time);
    let (day, month, year, clock) = (&http[5..7], &http[8..11], &http[12..16], &http[17..25]);
    let _ = write!(line, "{day}/{month}/{year}:{clock} +0000");
}

fn escape(line: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let _ = write!(line, "\\x{byte:02X}");
            }
            _ => line.push(char::from(byte)),
        }
    }
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]
    //! One record to log, and what its line must be.
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// A response as it is logged.
    pub fn record() -> AccessRecord {
        AccessRecord {
            peer: "192.0.2.7".parse().unwrap(),
            method: "GET".to_owned(),
            target: "/a?b".to_owned(),
            version: "HTTP/1.1",
            status: 200,
            body_bytes: 512,
            referer: None,
            user_agent: Some("curl/8".to_owned()),
            wait: Duration::from_millis(3),
            send: Duration::from_millis(120),
            time: UNIX_EPOCH + Duration::from_secs(951_827_696),
            complete: true,
        }
    }

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
        let record = AccessRecord {
            method: evil.to_owned(),
            target: evil.to_owned(),
            referer: Some(evil.to_owned()),
            user_agent: Some(evil.to_owned()),
            complete: false,
            ..record()
        };
        let line = line_of(&record);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6);
        assert!(
            line.bytes()
                .all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte))
        );
        assert!(line.ends_with("complete=0\n"));
    }
}
