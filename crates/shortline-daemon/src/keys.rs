//! What options of all commands have in common: each is defined once, as a flag and as a key of the
//! configuration file, what is left out is `None`, and flags lie over the file.

mod written;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use written::{OneOrMore, Word};

/// One set of options laid over another: what the upper one leaves out, the lower one says.
pub trait Overlay: Sized {
    /// `self` over `under`.
    fn over(self, under: Self) -> Self;

    /// The field of an option that the two say differently.
    fn difference(&self, other: &Self) -> Option<&'static str>;
}

/// Implements [`Overlay`] for a set of options: each field that is `None` is left out.
#[macro_export]
macro_rules! overlay {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl $crate::keys::Overlay for $type {
            fn over(self, under: Self) -> Self {
                Self { $($field: self.$field.or(under.$field)),* }
            }

            fn difference(&self, other: &Self) -> Option<&'static str> {
                $(if self.$field != other.$field {
                    return Some(stringify!($field));
                })*
                None
            }
        }
    };
}

/// A key whose value is read from text like its flag. A number or true and false may stand there without quotes.
///
/// # Errors
/// That it is no text, or what its parser says.
pub fn from_text<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    Word::deserialize(source)?.parse()
}

/// The same for a field that may be left out (with `#[serde(default)]`).
///
/// # Errors
/// That it is no text, or what its parser says.
pub fn some_from_text<'de, D, T>(source: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    from_text(source).map(Some)
}

/// The same for a list. One value alone is a list of one.
///
/// # Errors
/// That it is no list of texts, or what the parser says of the first that is wrong.
pub fn all_from_text<'de, D, T>(source: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let texts: Option<Vec<Word>> = one_or_more(source)?;
    let read: Result<Vec<T>, D::Error> = texts.iter().flatten().map(Word::parse).collect();
    read.map(Some)
}

/// A list for a field that may be left out. One value or table alone is a list of one: `index = "a"` is
/// `index = ["a"]`, and `[listen]` is `[[listen]]`.
///
/// # Errors
/// What is wrong with a value.
pub fn one_or_more<'de, D, T>(source: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    source.deserialize_any(OneOrMore::default()).map(Some)
}

/// The same, empty if it is left out.
///
/// # Errors
/// What is wrong with a value.
pub fn any_number<'de, D, T>(source: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    source.deserialize_any(OneOrMore::default())
}
