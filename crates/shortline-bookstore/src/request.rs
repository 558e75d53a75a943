//! The fields of a visitor's request.

use std::collections::HashMap;
use std::str::FromStr;

use thiserror::Error;

use crate::store::StoreError;

/// The most fields a request may have.
const FIELDS_MAX: usize = 64;

/// Why a page cannot be shown.
#[derive(Debug, Error)]
pub(crate) enum PageError {
    /// The visitor's fault: a field is missing or wrong.
    #[error("field `{field}`: want {want}")]
    Field {
        field: &'static str,
        want: &'static str,
    },
    /// The visitor's fault: too many fields.
    #[error("more than {FIELDS_MAX} fields")]
    Fields,
    /// What was asked for does not exist.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Name and password do not belong together.
    #[error("user name and password do not belong together")]
    Password,
    /// A fault of the database, or of the connection to it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The fields of a query or a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(HashMap<String, String>);

impl Fields {
    /// Parses `encoded`, such as `a=1&b=two`. If a name occurs twice, the last one counts.
    pub fn parse(encoded: &[u8]) -> Result<Self, PageError> {
        let mut fields = HashMap::new();
        for (name, value) in form_urlencoded::parse(encoded) {
            if fields.len() >= FIELDS_MAX {
                return Err(PageError::Fields);
            }
            fields.insert(name.into_owned(), value.into_owned());
        }
        Ok(Self(fields))
    }

    /// A required text.
    pub fn text(&self, field: &'static str) -> Result<&str, PageError> {
        let want = "a text";
        self.optional_text(field)
            .ok_or(PageError::Field { field, want })
    }

    /// An optional text. An empty one counts as absent.
    pub fn optional_text(&self, field: &'static str) -> Option<&str> {
        let text = self.0.get(field).map(String::as_str);
        text.filter(|text| !text.is_empty())
    }

    /// A required number.
    pub fn number<T: FromStr>(&self, field: &'static str) -> Result<T, PageError> {
        let want = "a whole number";
        self.optional_number(field)?
            .ok_or(PageError::Field { field, want })
    }

    /// An optional number.
    pub fn optional_number<T: FromStr>(&self, field: &'static str) -> Result<Option<T>, PageError> {
        let parse = |text: &str| {
            let want = "a whole number";
            text.parse().map_err(|_| PageError::Field { field, want })
        };
        self.optional_text(field).map(parse).transpose()
    }

    /// The fields whose names consist of `prefix` and a number: that number and the field's value.
    pub fn numbered(&self, prefix: &'static str) -> Result<Vec<(i64, i64)>, PageError> {
        let want = "whole numbers";
        let mut pairs = Vec::new();
        for (name, value) in &self.0 {
            let Some(number) = name.strip_prefix(prefix) else {
                continue;
            };
            let pair = number.parse().ok().zip(value.parse().ok());
            pairs.push(pair.ok_or(PageError::Field {
                field: prefix,
                want,
            })?);
        }
        // A hash map's order would differ every time, and rows are locked in this order.
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The session, as far as it is known.
    pub fn session(&self) -> Result<Session, PageError> {
        Ok(Session {
            customer: self.optional_number("c_id")?,
            cart: self.optional_number("shopping_id")?,
        })
    }
}

/// What every link of a page carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub customer: Option<i64>,
    pub cart: Option<i64>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_what_they_are_called() {
        let fields = Fields::parse(b"c_id=7&shopping_id=&title=a+b%26c&qty_3=2&qty_1=0").unwrap();
        assert_eq!(fields.session().unwrap().customer, Some(7));
        assert_eq!(fields.session().unwrap().cart, None);
        assert_eq!(fields.text("title").unwrap(), "a b&c");
        assert_eq!(fields.numbered("qty_").unwrap(), [(1, 0), (3, 2)]);
        assert!(fields.number::<i64>("title").is_err());
        assert!(fields.text("missing").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(fields) = Fields::parse(&bytes) {
                fields.session().ok();
                fields.numbered("qty_").ok();
            }
        }
    }
}
