//! The route template of an HTTP request: its path without identifiers.
//!
//! | part of the path | becomes |
//! |---|---|
//! | a number, or a UUID | `:id` |
//! | 8 or more hexadecimal digits, with one of 0 to 9 among them | `:id` |
//! | a token: 20 or more letters, digits and `-_=~`, with a digit and a capital letter | `:id` |
//! | anything with an escape (`%41`), or longer than 40 bytes | `:id` |
//! | a number inside a part: of three digits or more, or not directly after a letter | `:n` |
//! | the query, and the text from `;` on in a part | nothing |
//!
//! So `/books/17/pages/3?x=y` becomes `/books/:id/pages/:id`, `/img/thumb_12.gif` becomes
//! `/img/thumb_:n.gif`, and `/api/v2/oauth2` stays. Slugs are not recognised. Rules of the
//! configuration can name them.

use std::fmt::Write;

/// The most parts of a path that are kept. Further ones become `...`.
const PARTS_MAX: usize = 10;
/// The longest part that is kept, in bytes.
const PART_BYTES_MAX: usize = 40;
/// The least length of a token, in bytes.
const TOKEN_BYTES_MIN: usize = 20;
const HEXADECIMAL_BYTES_MIN: usize = 8;
/// At least this many digits are a number even right after a letter.
const NUMBER_DIGITS_MIN: usize = 3;

/// Appends the template of a path. The path may have a query.
pub(super) fn push_template(out: &mut String, path: &str) {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let path = path[..end].strip_prefix('/').unwrap_or(&path[..end]);
    for (count, part) in path.split('/').enumerate() {
        out.push('/');
        if count == PARTS_MAX {
            out.push_str("...");
            return;
        }
        push_part(out, part.split(';').next().unwrap_or_default());
    }
}

fn push_part(out: &mut String, part: &str) {
    if is_id(part) {
        out.push_str(":id");
        return;
    }
    let mut rest = part;
    let mut after_letter = false;
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits >= NUMBER_DIGITS_MIN || (digits > 0 && !after_letter) {
            out.push_str(":n");
        } else if first.is_control() {
            out.push('_');
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "{}", &rest[..digits.max(first.len_utf8())]);
        }
        after_letter = first.is_alphabetic();
        rest = &rest[digits.max(first.len_utf8())..];
    }
}

fn is_id(part: &str) -> bool {
    let bytes = part.as_bytes();
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let is_hexadecimal = |byte: &u8| byte.is_ascii_hexdigit();
    let is_number = has_digit && bytes.iter().all(u8::is_ascii_digit);
    let is_uuid = bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => is_hexadecimal(byte),
        });
    let is_long_hexadecimal =
        has_digit && bytes.len() >= HEXADECIMAL_BYTES_MIN && bytes.iter().all(is_hexadecimal);
    let is_token_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=~".contains(byte);
    let is_token = has_digit
        && bytes.len() >= TOKEN_BYTES_MIN
        && bytes.iter().any(u8::is_ascii_uppercase)
        && bytes.iter().all(is_token_byte);
    let is_long = bytes.len() > PART_BYTES_MAX || bytes.contains(&b'%');
    is_number || is_uuid || is_long_hexadecimal || is_token || is_long
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(path: &str) -> String {
        let mut out = String::new();
        push_template(&mut out, path);
        out
    }

    #[test]
    fn ids_are_folded_and_words_stay() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("*", "/*"),
            ("/books/17/pages/3?x=1#y", "/books/:id/pages/:id"),
            ("/api/v2/oauth2/", "/api/v2/oauth2/"),
            ("/u/550e8400-e29b-41d4-a716-446655440000", "/u/:id"),
            ("/blob/deadbeef01/x", "/blob/:id/x"),
            ("/deadbeef/facade", "/deadbeef/facade"),
            ("/img/thumb_12.gif", "/img/thumb_:n.gif"),
            ("/img/image123.gif", "/img/image:n.gif"),
            ("/17-a-slug;jsessionid=1", "/:n-a-slug"),
            ("/t/eyJhbGciOiJIUzI1NiJ9", "/t/:id"),
            ("/caf%C3%A9", "/:id"),
            ("/a/b/c/d/e/f/g/h/i/j/k/l", "/a/b/c/d/e/f/g/h/i/j/..."),
        ] {
            assert_eq!(template(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn another_number_is_the_same_route(one: u64, other: u64, words in "[a-z]{1,9}") {
            let path = |id: u64| format!("/{words}/{id}/{words}-{id}.html");
            prop_assert_eq!(template(&path(one)), template(&path(other)));
        }

        #[test]
        fn any_path_has_a_template_in_one_line(path in "\\PC{0,60}|[/a-f0-9%;?\\n]{0,60}") {
            prop_assert!(!template(&path).contains(['\n', '\r']));
        }
    }
}
