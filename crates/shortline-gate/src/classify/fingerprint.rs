//! A statement's fingerprint: the statement without what changes from one request to the next.
//!
//! Two statements have the same fingerprint if they differ only in:
//!
//! - constants, their signs and their casts;
//! - the length of lists of constants (`in (1, 2)`, `values (1), (2)`, `array[1, 2]`), and how often
//!   a row of a list is repeated;
//! - comments, blanks, upper and lower case outside quotes, or a semicolon at the end.
//!
//! This follows PostgreSQL's `pg_stat_statements` and MySQL's statement digests. But the result is
//! readable text, and a lexer makes it instead of a parser. Libraries that parse (libpg_query,
//! sqlparser) take tens of microseconds, and one of them is C.
//!
//! | statement | fingerprint |
//! |---|---|
//! | `SELECT * FROM t WHERE a = 'x' LIMIT -1` | `select * from t where a = ? limit ?` |
//! | `... WHERE a IN (1,2,3)` | `... where a in (...)` |
//! | `INSERT INTO t VALUES (1, now()), (2, now())` | `insert into t values (?, now())` |
//!
//! A text longer than [`NAME_BYTES_MAX`] is cut to that length, with a hash of the whole at its end.
//! The hash is the low 40 bits of the 64-bit FNV-1a of the text. So a type's name stays the same
//! across restarts and releases.

use super::lexer::{Dialect, Lexer, Token};

/// The most bytes of a statement that count. The rest is ignored.
pub const STATEMENT_BYTES_MAX: usize = 16 << 10;
/// The longest name of a type, in bytes.
pub const NAME_BYTES_MAX: usize = 96;
/// The longest fingerprint before it is cut to a name, in bytes.
const FINGERPRINT_BYTES_MAX: usize = 2 << 10;
/// The deepest nesting of lists. Deeper lists are not folded.
const LEVELS_MAX: usize = 64;
/// Replaces a list of constants.
const LIST: &[u8] = b"...";
/// The bytes of the hash in a name, with the mark before it.
const HASH_BYTES: usize = "… 0123456789".len();

/// The name of a statement's type. Empty only if the statement is.
pub fn fingerprint(sql: &[u8], dialect: Dialect) -> String {
    let sql = &sql[..sql.len().min(STATEMENT_BYTES_MAX)];
    let mut writer = Writer::default();
    for token in Lexer::new(sql, dialect) {
        writer.token(token);
        if writer.text.len() > FINGERPRINT_BYTES_MAX {
            break;
        }
    }
    name(&String::from_utf8_lossy(&writer.finish()))
}

/// The name of a type from a text. A long text is cut and told apart by its hash.
///
/// For a long list of columns, the table is named instead: `select … from item where …`.
pub(super) fn name(text: &str) -> String {
    if text.len() <= NAME_BYTES_MAX {
        return text.to_owned();
    }
    let hash = fnv_1a(text.as_bytes()) & 0xff_ffff_ffff;
    let from = text
        .strip_prefix("select ")
        .and_then(|_| text.find(" from "));
    let shown = match from {
        Some(at) if at > NAME_BYTES_MAX / 3 => format!("select …{}", &text[at..]),
        _ => text.to_owned(),
    };
    let mut end = shown.len().min(NAME_BYTES_MAX - HASH_BYTES);
    while !shown.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… {hash:010x}", &shown[..end])
}

fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The end of the text so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// A word after which a new expression begins: `select`, `in`, `and`.
    Keyword,
    /// `is`, `not` or `set`. A NULL, TRUE or FALSE after it is not a constant.
    KeepsNull,
    /// Another word, or a name in quotes.
    Name,
    Constant,
    Open,
    Close,
    Semicolon,
    /// `.` or `::`
    Joint,
    Operator,
}

/// An open list.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The position of its bracket.
    start: usize,
    close: u8,
    /// How many constants in a row end it: 0, 1, or 2 for more.
    constants: u8,
}

/// The fingerprint so far.
#[derive(Default)]
struct Writer {
    text: Vec<u8>,
    last: Last,
    levels: Vec<Level>,
    /// Open lists deeper than [`LEVELS_MAX`].
    levels_uncounted: usize,
    /// A comma held back until something follows it.
    comma: bool,
    /// A `+` or `-` that belongs to the next token if that is a constant.
    sign: Option<u8>,
    /// The next word is the type of a cast constant.
    cast: bool,
}

impl Writer {
    fn token(&mut self, token: Token<'_>) {
        if std::mem::take(&mut self.cast) && matches!(token, Token::Word(_) | Token::Quoted(_)) {
            return;
        }
        match token {
            Token::Word(word) if self.is_constant(word) => self.constant(),
            Token::Constant => self.constant(),
            Token::Word(word) => self.word(word),
            Token::Quoted(text) => {
                self.element_goes_on();
                self.space();
                let printable = text.iter().map(|byte| (*byte).max(b' '));
                self.text.extend(printable);
                self.last = Last::Name;
            }
            Token::Open(bracket) => self.open(bracket),
            Token::Close(bracket) => self.close(bracket),
            Token::Comma => {
                self.flush();
                self.comma = true;
            }
            Token::Semicolon => self.semicolon(),
            Token::Operator(b"::") if self.last == Last::Constant && !self.comma => {
                self.cast = true;
            }
            Token::Operator(operator) => self.operator(operator),
        }
    }

    /// The text with its open lists closed, so that it does not matter where a statement was cut.
    fn finish(mut self) -> Vec<u8> {
        while let Some(level) = self.levels.pop() {
            self.fold(level);
        }
        let blank = |byte: &u8| matches!(byte, b' ' | b';');
        let kept = self.text.iter().rposition(|byte| !blank(byte));
        self.text.truncate(kept.map_or(0, |last| last + 1));
        self.text
    }

    fn is_constant(&self, word: &[u8]) -> bool {
        let is_named = [b"null".as_slice(), b"true", b"false"]
            .iter()
            .any(|name| word.eq_ignore_ascii_case(name));
        is_named && self.last != Last::KeepsNull
    }

    /// Adds a constant. A whole element of a list joins the constants before it.
    fn constant(&mut self) {
        let is_element = self.comma || self.last == Last::Open;
        // It belongs to the constant.
        self.sign = None;
        let level = self.levels.last_mut().filter(|_| is_element);
        let before = level.map_or(0, |level| {
            let before = level.constants;
            level.constants = (before + 1).min(2);
            before
        });
        match before {
            0 => {
                self.write_comma();
                self.space();
                self.text.push(b'?');
            }
            1 => {
                self.write_comma();
                self.space();
                self.text.extend_from_slice(LIST);
            }
            _ => self.comma = false,
        }
        self.last = Last::Constant;
    }

    fn word(&mut self, word: &[u8]) {
        self.element_goes_on();
        self.space();
        let start = self.text.len();
        self.text.extend(word.iter().map(u8::to_ascii_lowercase));
        self.last = kind(&self.text[start..]);
    }

    fn open(&mut self, bracket: u8) {
        self.element_goes_on();
        if !matches!(self.last, Last::Name | Last::Close | Last::Constant) {
            self.space();
        }
        if self.levels.len() < LEVELS_MAX {
            self.levels.push(Level {
                start: self.text.len(),
                close: if bracket == b'(' { b')' } else { b']' },
                constants: 0,
            });
        } else {
            self.levels_uncounted += 1;
        }
        self.text.push(bracket);
        self.last = Last::Open;
    }

    fn close(&mut self, bracket: u8) {
        self.flush();
        if self.levels_uncounted > 0 {
            self.levels_uncounted -= 1;
            self.text.push(bracket);
        } else if let Some(level) = self.levels.pop() {
            self.fold(level);
        } else {
            self.text.push(bracket);
        }
        self.last = Last::Close;
    }

    /// Closes a list. One of only constants becomes `(...)`; one equal to the list before it is
    /// dropped.
    fn fold(&mut self, level: Level) {
        let inside = level.start + 1;
        if matches!(&self.text[inside..], b"?" | b"?, ...") {
            self.text.truncate(inside);
            self.text.extend_from_slice(LIST);
        }
        self.text.push(level.close);
        let (before, list) = self.text.split_at(level.start);
        let is_repeated = before
            .strip_suffix(b", ")
            .is_some_and(|before| before.ends_with(list));
        if is_repeated {
            self.text.truncate(level.start - b", ".len());
        }
    }

    fn semicolon(&mut self) {
        self.flush();
        if !matches!(self.last, Last::Nothing | Last::Semicolon) {
            self.text.push(b';');
            self.last = Last::Semicolon;
        }
    }

    fn operator(&mut self, operator: &[u8]) {
        let is_sign = matches!(operator, b"+" | b"-");
        let ends_operand = matches!(self.last, Last::Name | Last::Constant | Last::Close);
        if is_sign && (self.comma || !ends_operand) {
            self.write_sign();
            self.sign = Some(operator[0]);
            return;
        }
        self.element_goes_on();
        let is_joint = matches!(operator, b"." | b"::");
        if !is_joint {
            self.space();
        }
        self.text.extend_from_slice(operator);
        self.last = if is_joint {
            Last::Joint
        } else {
            Last::Operator
        };
    }

    /// Notes that what is written now is not a constant of a list.
    fn element_goes_on(&mut self) {
        self.flush();
        if let Some(level) = self.levels.last_mut() {
            level.constants = 0;
        }
    }

    /// Writes what was held back.
    fn flush(&mut self) {
        self.write_comma();
        self.write_sign();
    }

    fn write_comma(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.text.push(b',');
            self.last = Last::Operator;
        }
    }

    fn write_sign(&mut self) {
        if let Some(sign) = self.sign.take() {
            self.write_comma();
            self.space();
            self.text.push(sign);
            self.last = Last::Operator;
        }
    }

    fn space(&mut self) {
        if !matches!(self.last, Last::Nothing | Last::Open | Last::Joint) {
            self.text.push(b' ');
        }
    }
}

/// The kind of a word: one after which an expression or a list begins, or a name.
fn kind(word: &[u8]) -> Last {
    match word {
        b"is" | b"not" | b"set" => Last::KeepsNull,
        b"all" | b"and" | b"as" | b"between" | b"by" | b"call" | b"case" | b"default"
        | b"distinct" | b"div" | b"else" | b"except" | b"exists" | b"from" | b"having"
        | b"ilike" | b"in" | b"intersect" | b"interval" | b"into" | b"join" | b"like"
        | b"limit" | b"mod" | b"offset" | b"on" | b"or" | b"over" | b"return" | b"returning"
        | b"select" | b"then" | b"to" | b"union" | b"using" | b"value" | b"values" | b"when"
        | b"where" | b"with" | b"xor" => Last::Keyword,
        _ => Last::Name,
    }
}

#[cfg(test)]
#[path = "fingerprint/tests.rs"]
mod tests;
