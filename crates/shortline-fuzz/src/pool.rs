//! What a pool reads: messages of SCRAM from either end, PgBouncer's list of users, statements that may leave
//! something behind, and rows in which the server says what a session has.

use shortline_gate::postgres::pgbouncer::{Line, lines, pairs};
use shortline_gate::postgres::pool::Users;
use shortline_gate::postgres::pool::leaving::{
    call_leaves_state, has_escaped_name, leaves_state, runs_text,
};
use shortline_gate::postgres::pool::own_names::own_names;
use shortline_gate::postgres::pool::settings::{Found, Settings};
use shortline_gate::postgres::scram::{Client, Keys, Secret, Server};
use shortline_web::proxy_header::Header;

/// Nobody proves what nobody knows, whatever is said; and a server that cannot prove itself is found out.
pub fn scram(bytes: &[u8]) {
    let keys = || Keys::of_nobody(b"a", &[1; 32]);
    if let Err(error) = Server::begin(keys(), bytes) {
        super::assert_one_line(&error);
    }
    let (server, _) = Server::begin(keys(), b"n,,n=,r=a").expect("it is a first message");
    assert!(server.finish(bytes).is_err());
    let secret = Secret::Password("a".to_owned());
    if let Ok((proven, _)) = Client::new(&secret).prove(bytes) {
        assert!(proven.verify(bytes).is_err());
    }
    let text = String::from_utf8_lossy(bytes);
    Keys::parse(&text);
}

/// A list is read, or the line that is wrong is named.
pub fn users(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err((line, problem)) = Users::parse(&text) {
        assert!((1..=text.lines().count()).contains(&line));
        super::assert_one_line(&problem);
    }
}

/// A configuration is read, or the line or list that is wrong is named.
pub fn pgbouncer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match lines(&text) {
        Err(error) => super::assert_one_line(&error.to_string()),
        Ok(said) => {
            for (number, line) in said {
                assert!((1..=text.lines().count()).contains(&number));
                if let Line::Pair(key, value) = line {
                    assert!(!key.is_empty() && value == value.trim());
                    for (name, _) in pairs(value).unwrap_or_default() {
                        assert!(!name.is_empty() && !name.contains(char::is_whitespace));
                    }
                }
            }
        }
    }
}

/// Of a header no byte more is asked for than it has, and it comes to an end.
pub fn proxy(bytes: &[u8]) {
    let mut length = 0;
    loop {
        match Header::of(&bytes[..length]) {
            Ok(Header::Needs(more)) => {
                assert!(more > length);
                if more > bytes.len() {
                    return;
                }
                length = more;
            }
            Ok(Header::Whole(_)) => return,
            Err(error) => return super::assert_one_line(&error),
        }
    }
}

/// Nothing before a SET hides it, and what is put on a connection is whole Queries.
pub fn state(bytes: &[u8]) {
    let behind = [bytes, b";set a = 1"].concat();
    assert!(leaves_state(&behind));
    // They come to an end, whatever they read.
    let _ = (
        call_leaves_state(bytes),
        has_escaped_name(bytes),
        runs_text(bytes),
    );
    if let Some(names) = own_names(bytes) {
        assert!(names.iter().all(|name| name.contains(&b'.')));
    }
    let mut found = Found::default();
    found.take_row(bytes);
    let (name, value) = bytes.split_at(bytes.len() / 2);
    let mut settings = found.settings;
    settings.report(name, value);
    for query in settings.changes_from(&Settings::default()) {
        let length = query[1..].first_chunk().expect("a Query has a length");
        assert_eq!(query.len(), 1 + u32::from_be_bytes(*length) as usize);
    }
}
