//! What options of all commands have in common: each is defined once, as a flag and as a key of the
//! configuration file, what is left out is `None`, and flags lie over the file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

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

/// A key whose value is read from text like its flag.
///
/// # Errors
/// That it is no text, or what its parser says.
pub fn from_text<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    String::deserialize(source)?
        .parse()
        .map_err(de::Error::custom)
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

/// The same for a list.
///
/// # Errors
/// That it is no list of texts, or what the parser says of the first that is wrong.
pub fn all_from_text<'de, D, T>(source: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let texts = Vec::<String>::deserialize(source)?;
    let read: Result<Vec<T>, T::Err> = texts.iter().map(|text| text.parse()).collect();
    read.map(Some).map_err(de::Error::custom)
}
