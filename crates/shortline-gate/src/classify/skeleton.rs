//! A short statement without its constants, as a key for lookups.
//!
//! Equal skeletons have equal fingerprints. A [`fingerprint`](super::fingerprint()) is a function
//! of the tokens, and does not use the value of a constant. The converse does not hold: lists of
//! different lengths have different skeletons.
//!
//! A skeleton is never written down. Its tokens go into the hash as they are cut.

use std::hash::Hasher;

use super::lexer::{Dialect, Lexer, Token};

/// A longer statement has no skeleton. Looking it up as it is costs less than cutting it into
/// tokens.
const STATEMENT_BYTES_MAX: usize = 512;

/// The kinds of tokens with a text, and that of one which is a single byte.
const WORD: u32 = 1;
const QUOTED: u32 = 2;
const OPERATOR: u32 = 3;
const BYTE: u32 = 4;
/// Stands for a constant.
const CONSTANT: u32 = 5;

/// Hashes the skeleton of a statement, if it is short. Returns false if it is not.
pub(super) fn hash(statement: &[u8], dialect: Dialect, hasher: &mut impl Hasher) -> bool {
    if statement.len() > STATEMENT_BYTES_MAX {
        return false;
    }
    // All at once, which takes less than word by word.
    let mut lowered = [0; STATEMENT_BYTES_MAX];
    let lowered = &mut lowered[..statement.len()];
    lowered.copy_from_slice(statement);
    lowered.make_ascii_lowercase();
    let mut lexer = Lexer::new(statement, dialect);
    while let Some(token) = lexer.next() {
        match token {
            Token::Word(word) => {
                let end = lexer.at();
                hash_text(hasher, WORD, &lowered[end - word.len()..end]);
            }
            Token::Quoted(text) => hash_text(hasher, QUOTED, text),
            Token::Operator(operator) => hash_text(hasher, OPERATOR, operator),
            Token::Constant => hasher.write_u32(CONSTANT),
            Token::Open(byte) | Token::Close(byte) => hash_byte(hasher, byte),
            Token::Comma => hash_byte(hasher, b','),
            Token::Semicolon => hash_byte(hasher, b';'),
        }
    }
    true
}

fn hash_byte(hasher: &mut impl Hasher, byte: u8) {
    hasher.write_u32(BYTE << 16 | u32::from(byte));
}

/// The kind and the length come first, so that no two sequences of tokens look the same.
fn hash_text(hasher: &mut impl Hasher, kind: u32, text: &[u8]) {
    let length = u32::try_from(text.len()).expect("invariant: the statement is short");
    hasher.write_u32(kind << 16 | length);
    hasher.write(text);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::classify::fingerprint;
    use proptest::prelude::*;

    /// Keeps what is hashed.
    #[derive(Default)]
    struct Kept(Vec<u8>);

    impl Hasher for Kept {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    fn of(sql: &[u8], dialect: Dialect) -> Option<Vec<u8>> {
        let mut kept = Kept::default();
        hash(sql, dialect, &mut kept).then_some(kept.0)
    }

    fn skeleton(sql: &str) -> Vec<u8> {
        of(sql.as_bytes(), Dialect::Postgres).unwrap()
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
        assert!(of(longest.as_bytes(), Dialect::MySql).is_some());
        let longer = longest + ";";
        assert!(of(longer.as_bytes(), Dialect::MySql).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_have_one(sql in prop::collection::vec(any::<u8>(), 0..=STATEMENT_BYTES_MAX)) {
            for dialect in [Dialect::Postgres, Dialect::MySql] {
                prop_assert!(of(&sql, dialect).is_some());
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
