//! Tokens of a statement, cut as PostgreSQL and MySQL do, as far as a fingerprint needs them.
//!
//! Sources: PostgreSQL's manual 4.1 (Lexical Structure) and MySQL's 9.1 and 9.7 (Literal Values,
//! Comments). Comments and blanks are dropped. So is the mark of MySQL's conditional comments
//! (`/*!50110 ... */`), whose content is code. Any bytes can be cut into tokens. A string or
//! comment without an end goes to the end of the statement.
//!
//! Departures: settings of a session are ignored. In MySQL a backslash always escapes in strings
//! (`NO_BACKSLASH_ESCAPES` is off), and `"` quotes a string (`ANSI_QUOTES` is off). In PostgreSQL a
//! backslash escapes only in `E''` (`standard_conforming_strings` is on).

use memchr::{memchr, memchr2, memmem};

/// The database whose lexical rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// PostgreSQL, and servers that speak its protocol.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
}

/// A piece of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword or unquoted name, or a MySQL variable with its `@`.
    Word(&'a [u8]),
    /// A quoted name, with its quotes.
    Quoted(&'a [u8]),
    /// A number, a string, a parameter.
    Constant,
    /// `(` or `[`.
    Open(u8),
    /// `)` or `]`.
    Close(u8),
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// Anything else.
    Operator(&'a [u8]),
}

/// The tokens of a statement, in order.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    dialect: Dialect,
    /// Inside `/*! ... */`.
    in_conditional: bool,
}

impl<'a> Lexer<'a> {
    /// The tokens of `text`.
    pub(super) fn new(text: &'a [u8], dialect: Dialect) -> Self {
        Self {
            text,
            at: 0,
            dialect,
            in_conditional: false,
        }
    }

    /// Where the last token ends.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let blanks = self.text[self.at..]
            .iter()
            .position(|&byte| !is_blank(byte));
        self.at += blanks?;
        let rest = &self.text[self.at..];
        // Most tokens are words. One with a quote or an ampersand behind it may be the beginning of a string.
        if is_word_start(rest[0]) {
            let length = word_length(rest);
            if !matches!(rest.get(length), Some(b'\'' | b'&')) {
                self.at += length;
                return Some(Token::Word(&rest[..length]));
            }
        }
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let (length, token) = token(rest, self.dialect)?;
        self.at += length;
        Some(token)
    }
}

impl Lexer<'_> {
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = match rest {
                [byte, ..] if is_blank(*byte) => 1,
                [byte, ..] if !matches!(byte, b'*' | b'/' | b'-' | b'#') => return,
                [b'*', b'/', ..] if self.in_conditional => {
                    self.in_conditional = false;
                    2
                }
                [b'/', b'*', ..] => match conditional_mark(rest, self.dialect) {
                    Some(length) => {
                        self.in_conditional = true;
                        length
                    }
                    None => comment_length(rest, self.dialect),
                },
                [b'-', b'-', ..] if is_line_comment(rest, self.dialect) => line_length(rest),
                [b'#', ..] if self.dialect == Dialect::MySql => line_length(rest),
                _ => return,
            };
            self.at += blank;
        }
    }
}

/// What a byte is, by a look-up: each byte of each statement is asked about.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        let byte = at as u8;
        let begins = byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        if byte <= b' ' || byte == 0x7f {
            classes[at] |= BLANK;
        }
        if begins {
            classes[at] |= WORD_START;
        }
        if begins || byte.is_ascii_digit() || byte == b'$' {
            classes[at] |= WORD;
        }
        at += 1;
    }
    let mut at = 0;
    while at < OPERATORS.len() {
        classes[OPERATORS[at] as usize] |= OPERATOR;
        at += 1;
    }
    classes
};
/// PostgreSQL's operators are made of these.
const OPERATORS: [u8; 17] = *b"+-*/<>=~!@#%^&|`?";
const BLANK: u8 = 1;
const WORD_START: u8 = 2;
const WORD: u8 = 4;
const OPERATOR: u8 = 8;

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

fn is_blank(byte: u8) -> bool {
    is(byte, BLANK)
}

/// Whether a line comment begins here. MySQL requires a blank after the dashes: `5--1` is a number
/// there.
fn is_line_comment(rest: &[u8], dialect: Dialect) -> bool {
    dialect == Dialect::Postgres || rest.get(2).is_none_or(|&byte| is_blank(byte))
}

fn line_length(rest: &[u8]) -> usize {
    memchr(b'\n', rest).unwrap_or(rest.len())
}

/// The length of `/*!` or `/*M!` and the version after it. The content of such a comment is code.
fn conditional_mark(rest: &[u8], dialect: Dialect) -> Option<usize> {
    let mark = match rest {
        _ if dialect == Dialect::Postgres => return None,
        [_, _, b'!', ..] => 3,
        [_, _, b'M', b'!', ..] => 4,
        _ => return None,
    };
    let version = rest[mark..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(mark + version.count())
}

/// The length of a comment. PostgreSQL's comments nest.
fn comment_length(rest: &[u8], dialect: Dialect) -> usize {
    let mut at = 2;
    if dialect == Dialect::MySql {
        return memmem::find(&rest[at..], b"*/").map_or(rest.len(), |end| at + end + 2);
    }
    let mut depth = 1_usize;
    while let Some(found) = memchr2(b'*', b'/', &rest[at..]) {
        at += found;
        match rest[at..] {
            [b'*', b'/', ..] => {
                at += 2;
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            [b'/', b'*', ..] => {
                at += 2;
                depth += 1;
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// The first token and its length, which is at least 1.
fn token(rest: &[u8], dialect: Dialect) -> Option<(usize, Token<'_>)> {
    let &first = rest.first()?;
    let is_mysql = dialect == Dialect::MySql;
    let constant = |length| (length, Token::Constant);
    let quoted = |length| (length, Token::Quoted(&rest[..length]));
    let word = |length| (length, Token::Word(&rest[..length]));
    Some(match first {
        b'\'' => constant(quoted_length(rest, 1, is_mysql)),
        b'"' if is_mysql => constant(quoted_length(rest, 1, true)),
        b'"' => quoted(quoted_length(rest, 1, false)),
        b'`' if is_mysql => quoted(quoted_length(rest, 1, false)),
        b'0'..=b'9' => constant(number_length(rest)),
        b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => constant(number_length(rest)),
        b'?' if is_mysql => constant(1),
        b'$' if !is_mysql => match dollar_length(rest) {
            Some(length) => constant(length),
            None => (1, Token::Operator(&rest[..1])),
        },
        b'@' if is_mysql => match variable_length(rest) {
            Some(length) => word(length),
            None => (1, Token::Operator(&rest[..1])),
        },
        b'(' | b'[' => (1, Token::Open(first)),
        b')' | b']' => (1, Token::Close(first)),
        b',' => (1, Token::Comma),
        b';' => (1, Token::Semicolon),
        _ if is_word_start(first) => match prefixed_string_length(rest, dialect) {
            Some(length) => constant(length),
            None => word(word_length(rest)),
        },
        _ => {
            let length = operator_length(rest, dialect);
            (length, Token::Operator(&rest[..length]))
        }
    })
}

fn is_word_start(byte: u8) -> bool {
    is(byte, WORD_START)
}

fn is_word(byte: u8) -> bool {
    is(byte, WORD)
}

fn word_length(rest: &[u8]) -> usize {
    let end = rest.iter().position(|&byte| !is_word(byte));
    end.unwrap_or(rest.len())
}

/// The length of a variable, such as `@name`. An `@` before a quote, as in `user@'host'`, does not
/// begin one.
fn variable_length(rest: &[u8]) -> Option<usize> {
    let marks = rest.iter().take_while(|&&byte| byte == b'@').count();
    match word_length(&rest[marks..]) {
        0 => None,
        length => Some(marks + length),
    }
}

/// The length up to the closing quote. `from` is the position after the opening quote.
fn quoted_length(rest: &[u8], from: usize, backslash_escapes: bool) -> usize {
    let quote = rest[from - 1];
    // A second search for the quote itself finds nothing more.
    let escape = if backslash_escapes { b'\\' } else { quote };
    let mut at = from;
    while let Some(found) = rest.get(at..).and_then(|text| memchr2(quote, escape, text)) {
        at += found;
        let is_doubled = rest.get(at + 1) == Some(&quote);
        if rest[at] == quote && !is_doubled {
            return at + 1;
        }
        at += 2;
    }
    rest.len()
}

/// The length of `E'...'`, `B'...'`, `X'...'`, `N'...'`, `U&'...'`.
fn prefixed_string_length(rest: &[u8], dialect: Dialect) -> Option<usize> {
    let is_mysql = dialect == Dialect::MySql;
    match rest {
        [b'e' | b'E', b'\'', ..] if !is_mysql => Some(quoted_length(rest, 2, true)),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
            Some(quoted_length(rest, 2, is_mysql))
        }
        [b'u' | b'U', b'&', b'\'', ..] if !is_mysql => Some(quoted_length(rest, 3, false)),
        _ => None,
    }
}

/// The length of digits with fraction and exponent, of hexadecimal and the like, and of anything
/// attached to them.
fn number_length(rest: &[u8]) -> usize {
    let is_hexadecimal = matches!(rest, [b'0', b'x' | b'X', ..]);
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let is_sign = matches!(byte, b'+' | b'-')
            && !is_hexadecimal
            && matches!(rest[at - 1], b'e' | b'E')
            && rest.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || is_sign) {
            break;
        }
        at += 1;
    }
    at
}

/// A parameter `$1`, or a string `$tag$...$tag$`.
fn dollar_length(rest: &[u8]) -> Option<usize> {
    let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    if digits > 0 {
        return Some(1 + digits);
    }
    let name = rest[1..]
        .iter()
        .take_while(|&&byte| is_word(byte) && byte != b'$');
    let tag_length = name.count() + 2;
    if rest.get(tag_length - 1) != Some(&b'$') {
        return None;
    }
    let (tag, content) = rest.split_at(tag_length);
    Some(memmem::find(content, tag).map_or(rest.len(), |end| end + 2 * tag_length))
}

fn operator_length(rest: &[u8], dialect: Dialect) -> usize {
    match rest {
        [b':', b':' | b'=', ..] => 2,
        _ if dialect == Dialect::MySql => mysql_operator_length(rest),
        // Most are a single byte.
        [_, next, ..] if !is(*next, OPERATOR) => 1,
        _ => postgres_operator_length(rest).max(1),
    }
}

fn mysql_operator_length(rest: &[u8]) -> usize {
    const OPERATORS: [&[u8]; 11] = [
        b"<=>", b"->>", b"<=", b">=", b"<>", b"!=", b"||", b"&&", b"<<", b">>", b"->",
    ];
    let longest = OPERATORS.iter().find(|known| rest.starts_with(known));
    longest.map_or(1, |known| known.len())
}

/// The length of a run of operator characters, up to a comment. A run that ends in `+` or `-` must
/// contain a character that standard operators lack. Otherwise those are signs: `=-1` is `=` and
/// `-1`.
fn postgres_operator_length(rest: &[u8]) -> usize {
    let run = rest.iter().take_while(|&&byte| is(byte, OPERATOR)).count();
    let starts_comment = |pair: &[u8]| pair == b"--" || pair == b"/*";
    let comment = rest[..run].windows(2).position(starts_comment);
    let mut length = comment.unwrap_or(run);
    if !rest[..length]
        .iter()
        .any(|byte| b"~!@#%^&|`?".contains(byte))
    {
        while length > 1 && matches!(rest[length - 1], b'+' | b'-') {
            length -= 1;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(sql: &str, dialect: Dialect) -> String {
        let words = Lexer::new(sql.as_bytes(), dialect).map(|token| match token {
            Token::Word(text) | Token::Quoted(text) | Token::Operator(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            Token::Constant => "CONSTANT".to_owned(),
            Token::Open(byte) | Token::Close(byte) => char::from(byte).to_string(),
            Token::Comma => ",".to_owned(),
            Token::Semicolon => ";".to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn postgres_strings_end_where_postgres_ends_them() {
        for (sql, expected) in [
            (r"'a''b' c", "CONSTANT c"),
            (r"'a\' c", "CONSTANT c"),
            (r"E'a\' c' d", "CONSTANT d"),
            (r"e'\\' d", "CONSTANT d"),
            ("$$a 'b $1$$ c", "CONSTANT c"),
            ("$x$a $$ $y$ $x$ c", "CONSTANT c"),
            ("$1 $23", "CONSTANT CONSTANT"),
            ("a$1 b", "a$1 b"),
            (
                "U&'d!0061' x'1F' B'01' n'a'",
                "CONSTANT CONSTANT CONSTANT CONSTANT",
            ),
            (r#""a""b" c"#, r#""a""b" c"#),
            ("'never ends", "CONSTANT"),
            ("$x$never ends", "CONSTANT"),
        ] {
            assert_eq!(told(sql, Dialect::Postgres), expected, "{sql}");
        }
    }

    #[test]
    fn mysql_strings_end_where_mysql_ends_them() {
        for (sql, expected) in [
            (r"'a\' c' d", "CONSTANT d"),
            (r#""a""b\"" c"#, "CONSTANT c"),
            ("`a``b` c", "`a``b` c"),
            ("? @x @@global.y", "CONSTANT @x @@global . y"),
            ("u@'%'", "u @ CONSTANT"),
            ("$$a", "$ $ a"),
            (r"'\", "CONSTANT"),
        ] {
            assert_eq!(told(sql, Dialect::MySql), expected, "{sql}");
        }
    }

    #[test]
    fn comments_are_dropped() {
        for (sql, dialect, expected) in [
            ("a /* b /* c */ d */ e", Dialect::Postgres, "a e"),
            ("a /* b /* c */ d", Dialect::MySql, "a d"),
            ("a--b\nc", Dialect::Postgres, "a c"),
            ("a--1 -- b\nc", Dialect::MySql, "a - - CONSTANT c"),
            ("a # b\nc", Dialect::MySql, "a c"),
            ("a # b", Dialect::Postgres, "a # b"),
            ("a /*!50110 b */ c */", Dialect::MySql, "a b c * /"),
            ("a /*M!100 b*/", Dialect::MySql, "a b"),
            ("a /*+ hint */ b", Dialect::MySql, "a b"),
            ("a /* never ends", Dialect::Postgres, "a"),
        ] {
            assert_eq!(told(sql, dialect), expected, "{sql}");
        }
    }

    #[test]
    fn numbers_and_operators_are_cut_apart() {
        for (sql, dialect, expected) in [
            (
                "a=-1.5e-7+.5",
                Dialect::Postgres,
                "a = - CONSTANT + CONSTANT",
            ),
            ("0x1f-1", Dialect::Postgres, "CONSTANT - CONSTANT"),
            ("a@>b::int[]", Dialect::Postgres, "a @> b :: int [ ]"),
            ("a->>'b'<>1", Dialect::MySql, "a ->> CONSTANT <> CONSTANT"),
            ("a<=>-1", Dialect::MySql, "a <=> - CONSTANT"),
            ("a@-1", Dialect::Postgres, "a @- CONSTANT"),
            ("*/*x*/+", Dialect::Postgres, "* +"),
        ] {
            assert_eq!(told(sql, dialect), expected, "{sql}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes: Vec<u8>, is_mysql: bool) {
            let dialect = if is_mysql { Dialect::MySql } else { Dialect::Postgres };
            prop_assert!(Lexer::new(&bytes, dialect).count() <= bytes.len());
        }

        #[test]
        fn any_text_of_tokens_comes_to_an_end(text in r#"[-'"`$/*!#\\a1e.?@:\n]{0,40}"#, is_mysql: bool) {
            let dialect = if is_mysql { Dialect::MySql } else { Dialect::Postgres };
            prop_assert!(Lexer::new(text.as_bytes(), dialect).count() <= text.len());
        }
    }
}
