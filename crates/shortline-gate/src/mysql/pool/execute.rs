//! Reads and rewrites COM_STMT_EXECUTE (MySQL's source documentation, "COM_STMT_EXECUTE").
//!
//! A client gives the types of the parameters with its first execution, and may leave them out afterwards. The server
//! keeps the last ones of a statement. Here several sessions execute the same statement of a connection, so the gate
//! keeps each session's types, and puts them into each execution that leaves them out.

use std::sync::Arc;

use super::prepared::COM_STMT_EXECUTE;
use crate::mysql::value;

/// The command, the statement, flags and the number of iterations.
const FIXED_BYTES: usize = 10;
/// The command and the statement.
const NAMED_BYTES: usize = 5;
/// Flags that ask for a cursor: to read, for update, scrollable.
const CURSOR: u8 = 0x07;
/// The type of NULL.
const NULL: [u8; 2] = [0x06, 0];

/// The types of a statement's parameters, two bytes each.
pub type Types = Arc<[u8]>;

/// An execution, as far as it has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Execute {
    /// What replaces the start of its payload, behind the statement's number.
    behind: Vec<u8>,
    /// The length of that start.
    pub replaced: usize,
    /// The types that it gives.
    pub types: Option<Types>,
    /// Whether it asks for a cursor.
    pub wants_cursor: bool,
}

impl Execute {
    /// Reads the start of an execution's payload, which has its types, if it gives them. `known` are those of the last
    /// execution. None if it is malformed, or if its types are not known.
    pub fn read(start: &[u8], parameters: u16, known: Option<&Types>) -> Option<Self> {
        let mut rest = start;
        let fixed = value::take(&mut rest, FIXED_BYTES)?;
        let mut execute = Self {
            behind: Vec::new(),
            replaced: NAMED_BYTES,
            types: None,
            wants_cursor: fixed[NAMED_BYTES] & CURSOR != 0,
        };
        if parameters == 0 {
            return Some(execute);
        }
        let nulls = value::take(&mut rest, usize::from(parameters).div_ceil(8))?;
        let nulls_end = start.len() - rest.len();
        if value::byte(&mut rest)? != 0 {
            let types = value::take(&mut rest, 2 * usize::from(parameters))?;
            execute.types = Some(types.into());
            return Some(execute);
        }
        let is_null = |at: usize| nulls[at / 8] & 1 << (at % 8) != 0;
        let types = match known {
            Some(known) => known.to_vec(),
            // Nothing is of any type.
            None if (0..usize::from(parameters)).all(is_null) => {
                NULL.repeat(usize::from(parameters))
            }
            None => return None,
        };
        execute.behind = [&start[NAMED_BYTES..nulls_end], &[1], &types].concat();
        execute.replaced = nulls_end + 1;
        Some(execute)
    }

    /// By how many bytes its head is longer than the start that it replaces.
    pub fn grows(&self) -> usize {
        NAMED_BYTES + self.behind.len() - self.replaced
    }

    /// The start of the payload that executes the server's statement of this number.
    pub fn head(&self, there: u32) -> Vec<u8> {
        [
            &[COM_STMT_EXECUTE],
            &there.to_le_bytes()[..],
            &self.behind[..],
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The payload as it goes to the server.
    fn rewritten(payload: &[u8], execute: &Execute) -> Vec<u8> {
        [&execute.head(0x0102), &payload[execute.replaced..]].concat()
    }

    #[test]
    fn types_are_put_in_where_they_are_left_out() {
        let first = b"\x17\x01\0\0\0\0\x01\0\0\0\x00\x01\x08\0\xfe\0\x07\0\0\0\0\0\0\0\x01a";
        let execute = Execute::read(first, 2, None).unwrap();
        assert_eq!(execute.types.as_deref(), Some(&b"\x08\0\xfe\0"[..]));
        assert_eq!(
            rewritten(first, &execute),
            b"\x17\x02\x01\0\0\0\x01\0\0\0\x00\x01\x08\0\xfe\0\x07\0\0\0\0\0\0\0\x01a"
        );
        let next = b"\x17\x01\0\0\0\x01\x01\0\0\0\x02\0\x08\0\0\0\0\0\0\0";
        let execute = Execute::read(next, 2, execute.types.as_ref()).unwrap();
        assert_eq!(
            (execute.types.is_none(), execute.wants_cursor),
            (true, true)
        );
        assert_eq!(
            rewritten(next, &execute),
            b"\x17\x02\x01\0\0\x01\x01\0\0\0\x02\x01\x08\0\xfe\0\x08\0\0\0\0\0\0\0"
        );
        assert_eq!(Execute::read(next, 2, None), None);
        let nothing = b"\x17\x01\0\0\0\0\x01\0\0\0\x03\0";
        let execute = Execute::read(nothing, 2, None).unwrap();
        assert_eq!(
            rewritten(nothing, &execute),
            b"\x17\x02\x01\0\0\0\x01\0\0\0\x03\x01\x06\0\x06\0"
        );
        assert_eq!(Execute::read(b"\x17\x01\0\0\0\0\x01\0\0", 0, None), None);
        let none = b"\x17\x01\0\0\0\0\x01\0\0\0";
        let execute = Execute::read(none, 0, None).unwrap();
        assert_eq!(rewritten(none, &execute), b"\x17\x02\x01\0\0\0\x01\0\0\0");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(start in prop::collection::vec(any::<u8>(), 0..80), parameters in 0..20_u16, knows: bool) {
            let known: Types = vec![3; 2 * usize::from(parameters)].into();
            if let Some(execute) = Execute::read(&start, parameters, knows.then_some(&known)) {
                prop_assert!(execute.replaced <= start.len());
                let there = rewritten(&start, &execute);
                // The server's copy gives its types, and is the same to whoever knows none.
                let again = Execute::read(&there, parameters, None);
                if parameters > 0 {
                    let types = again.unwrap().types;
                    prop_assert!(!knows || types == execute.types.or(Some(known)));
                }
            }
        }
    }
}
