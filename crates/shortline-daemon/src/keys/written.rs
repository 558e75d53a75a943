//! Values of the configuration file as people write them: a number or a truth without quotes where a text is wanted, and one
//! value where a list is.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value as it is written.
pub(super) struct Word {
    text: String,
    has_quotes: bool,
}

impl Word {
    fn bare(value: impl fmt::Display) -> Self {
        Self {
            text: value.to_string(),
            has_quotes: false,
        }
    }

    pub(super) fn parse<T: FromStr<Err: fmt::Display>, E: de::Error>(&self) -> Result<T, E> {
        self.text.parse().map_err(|error| match self.has_quotes {
            true => E::custom(error),
            false => E::custom(format_args!("{error}, in quotes")),
        })
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(WordVisitor)
    }
}

struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Word, E> {
        Ok(Word {
            text: text.to_owned(),
            has_quotes: true,
        })
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Word, E> {
        Ok(Word::bare(value))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Word, E> {
        Ok(Word::bare(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Word, E> {
        Ok(Word::bare(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Word, E> {
        Ok(Word::bare(number))
    }
}

/// Unlike an untagged enum it keeps the place of an error.
pub(super) struct OneOrMore<T>(PhantomData<T>);

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Deserialize<'de>> OneOrMore<T> {
    fn one<E: de::Error>(value: impl IntoDeserializer<'de, E>) -> Result<Vec<T>, E> {
        T::deserialize(value.into_deserializer()).map(|one| vec![one])
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(|one| vec![one])
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        Self::one(text)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Vec<T>, E> {
        Self::one(number)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Vec<T>, E> {
        Self::one(value)
    }
}
