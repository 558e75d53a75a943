//! A short statement without its constants, as a key for lookups.
//!
//! Equal skeletons have equal fingerprints. A [`fingerprint`](super::fingerprint()) is a function
//! of the tokens, and does not use the value of a constant. The converse does not hold: lists of
//! different lengths have different skeletons.

use super::lexer::{Dialect, Lexer, Token};

/// A longer statement has no skeleton. Looking it up as it is costs less than cutting it into
/// tokens.
const STATEMENT_BYTES_MAX: usize = 512;
/// A token takes at most one byte more here than in the statement.
const SKELETON_BYTES: usize = 2 * STATEMENT_BYTES_MAX;

/// Stands for a constant.
const CONSTANT: u8 = 1;
/// Begins a word. Its text follows, as that of the other two kinds. No byte of the text is below a blank.
const WORD: u8 = 2;
const QUOTED: u8 = 3;
const OPERATOR: u8 = 4;

/// The skeleton of a statement.
pub(super) struct Skeleton {
    bytes: [u8; SKELETON_BYTES],
    length: usize,
}

impl Skeleton {
    /// The skeleton of a statement, if it is short.
    pub(super) fn of(statement: &[u8], dialect: Dialect) -> Option<Self> {
        if statement.len() > STATEMENT_BYTES_MAX {
            return None;
        }
        let mut skeleton = Self {
            bytes: [0; SKELETON_BYTES],
            length: 0,
        };
        for token in Lexer::new(statement, dialect) {
            match token {
                Token::Word(word) => skeleton.text(WORD, word),
                Token::Quoted(text) => skeleton.text(QUOTED, text),
                Token::Constant => skeleton.byte(CONSTANT),
                Token::Open(bracket) | Token::Close(bracket) => skeleton.byte(bracket),
                Token::Comma => skeleton.byte(b','),
                Token::Semicolon => skeleton.byte(b';'),
                Token::Operator(operator) => skeleton.text(OPERATOR, operator),
            }
        }
        Some(skeleton)
    }

    /// The key.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    /// Adds a token. The first byte is its kind, so that no two sequences of tokens look the same.
    fn text(&mut self, kind: u8, text: &[u8]) {
        self.byte(kind);
        let end = self.length + text.len();
        let kept = self.bytes[self.length..end].iter_mut();
        for (kept, byte) in kept.zip(text) {
            *kept = if kind == WORD {
                byte.to_ascii_lowercase()
            } else {
                // As in the fingerprint.
                (*byte).max(b' ')
            };
        }
        self.length = end;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::classify::fingerprint;
    use proptest::prelude::*;

    fn skeleton(sql: &str) -> Vec<u8> {
        let skeleton = Skeleton::of(sql.as_bytes(), Dialect::Postgres);
        skeleton.unwrap().bytes().to_vec()
    }

    #[test]
    fn constants_comments_and_capitals_do_not_count() {
        let one = skeleton("SELECT a FROM t WHERE b = 17 -- first");
        assert_eq!(one, skeleton("select a from t\nwhere b = 'x'"));
        for other in [
            "select a from t where b = c",
            "select a from t where \"b\" = 1",
            "select a from t where (b) = 1",
            "select a from t1 where b = 1",
        ] {
            assert_ne!(one, skeleton(other), "{other}");
        }
    }

    #[test]
    fn a_long_statement_has_none() {
        let longest = ";".repeat(STATEMENT_BYTES_MAX);
        assert!(Skeleton::of(longest.as_bytes(), Dialect::MySql).is_some());
        let longer = longest + ";";
        assert!(Skeleton::of(longer.as_bytes(), Dialect::MySql).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_have_one(sql in prop::collection::vec(any::<u8>(), 0..=STATEMENT_BYTES_MAX)) {
            for dialect in [Dialect::Postgres, Dialect::MySql] {
                prop_assert!(Skeleton::of(&sql, dialect).is_some());
            }
        }

        #[test]
        fn equal_skeletons_have_equal_fingerprints(
            first in "[a1 ,;'\"(.-]{0,6}",
            second in "[a1 ,;'\"(.-]{0,6}",
        ) {
            let fingerprint = |sql: &str| fingerprint(sql.as_bytes(), Dialect::Postgres);
            if skeleton(&first) == skeleton(&second) {
                prop_assert_eq!(fingerprint(&first), fingerprint(&second));
            }
        }
    }
}
