//! Formats of one's own: what nginx's users write, and each error.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::super::testing::{proxied, record};
use super::*;

/// nginx's `main` of its packages.
const MAIN: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
                    \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"";

fn line(format: &str, record: &AccessRecord) -> String {
    let template: Template = format.parse().unwrap();
    let mut line = String::new();
    template.write_line(&mut line, record);
    line
}

fn error(format: &str) -> String {
    format.parse::<Template>().unwrap_err().to_string()
}

#[test]
fn a_format_of_nginx_is_written_as_there() {
    let template: Template = MAIN.parse().unwrap();
    assert_eq!(
        template.fields().request,
        ["referer", "user-agent", "x-forwarded-for"]
    );
    let mut record = record();
    record
        .fields
        .request
        .push(Some(b"10.0.0.1, 10.0.0.2".into()));
    assert_eq!(
        line(MAIN, &record),
        "192.0.2.7 - - [29/Feb/2000:12:34:56 +0000] \"GET /a?b HTTP/1.1\" 200 512 \"-\" \"curl/8\" \
         \"10.0.0.1, 10.0.0.2\"\n"
    );
}

#[test]
fn times_tell_the_application_from_the_uplink() {
    let format = "$request_time $queue_time $send_time $upstream_addr $upstream_connect_time \
                  $upstream_header_time $upstream_response_time $gate_time";
    assert_eq!(
        line(format, &proxied()),
        "0.123 0.002 0.120 127.0.0.1:9000 0.000 0.001 0.040 -\n"
    );
    assert_eq!(line(format, &record()), "0.123 0.002 0.120 - - - - -\n");
}

#[test]
fn each_variable_has_a_value() {
    for (name, _) in VARIABLES {
        let text = line(&format!("${{{name}}}."), &proxied());
        assert!(text.ends_with(".\n"), "{name}: {text}");
    }
    let all = "${host}:$scheme:$server_name:$ssl_protocol:$trace_id:$args:$msec:$time_iso8601:\
               $request_completion:$sent_http_content_encoding:$ssl_client_s_dn:$ssl_client_fingerprint:$ssl_client_verify";
    assert_eq!(
        line(all, &proxied()),
        "example.org:https:example.org:TLSv1.3:4bf92f3577b34da6a3ce929d0e0e4736:b:951827696.789:\
         2000-02-29T12:34:56+00:00:OK:gzip:CN=backup:00ff:SUCCESS\n"
    );
}

#[test]
fn each_error_names_what_is_wrong() {
    for (format, told) in [
        (
            "jsn",
            "`jsn` is not a log format: give combined, json, or a text with variables such as '$remote_addr $status'",
        ),
        (
            "$body_bytes",
            "`$body_bytes` is not a variable of a log format: did you mean `$body_bytes_sent`?",
        ),
        (
            "a $ b",
            "`$ b`: a name follows each $, such as $status or ${status}",
        ),
        (
            "${status",
            "`${status`: the brace is not closed: write it like ${status}",
        ),
        (
            "escape=none $status",
            "`escape=none`: is default or json; without escaping a client could forge lines",
        ),
        (
            "$status\n$host",
            "a log format is one line, without control characters: `$status\\n$host`",
        ),
    ] {
        assert_eq!(error(format), told);
    }
    let many: String = (0..33).map(|at| format!("$http_a{at} ")).collect();
    assert_eq!(
        error(&many),
        "a log format has 4096 bytes and 32 header fields at most"
    );
}

fn with_agent(agent: Vec<u8>) -> AccessRecord {
    let mut record = record();
    record.fields.request = vec![Some(agent)];
    record
}

proptest! {
    #[test]
    fn nothing_a_client_sends_ends_a_field_or_a_line(agent in proptest::collection::vec(any::<u8>(), 0..60)) {
        let line = line("\"$http_user_agent\" $status", &with_agent(agent));
        prop_assert_eq!(line.matches('"').count(), 2);
        prop_assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn json_of_ones_own_is_json(agent in proptest::collection::vec(any::<u8>(), 0..60)) {
        let line = line("escape=json {\"agent\":\"$http_user_agent\"}", &with_agent(agent.clone()));
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(read["agent"].as_str().unwrap(), decoded(&agent));
    }

    #[test]
    fn no_format_panics(text in "[$a-z_{}= \"]{0,40}") {
        let _ = text.parse::<Template>().is_ok();
    }
}
