//! What time adds to a policy's order, so that no job waits for ever: nothing, [`Aging`] or
//! [`Growing`].

mod aging;
mod growing;

use std::str::FromStr;

pub use aging::Aging;
pub(crate) use aging::IN_ORDER;
pub use growing::Growing;

/// How a waiting job becomes more urgent, under any policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Urgency {
    /// Not at all: the policy alone decides.
    #[default]
    None,
    /// At once, when its deadline has passed.
    Aging(Aging),
    /// Bit by bit, from its arrival on.
    Growing(Growing),
}

impl Urgency {
    /// The aging factor, if that is the kind.
    pub fn aging(self) -> Option<Aging> {
        match self {
            Urgency::Aging(aging) => Some(aging),
            _ => None,
        }
    }

    /// The growing factor, if that is the kind.
    pub fn growing(self) -> Option<Growing> {
        match self {
            Urgency::Growing(growing) => Some(growing),
            _ => None,
        }
    }
}

/// A factor that is not a finite number above 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{value}`: must be a number above 0, such as 5")]
pub struct FactorError {
    what: &'static str,
    value: String,
}

/// The factor, if it is finite and above 0.
fn checked(what: &'static str, factor: f64) -> Result<f64, FactorError> {
    if factor.is_finite() && factor > 0.0 {
        Ok(factor)
    } else {
        Err(FactorError {
            what,
            value: factor.to_string(),
        })
    }
}

fn read(what: &'static str, text: &str) -> Result<f64, FactorError> {
    let refused = || FactorError {
        what,
        value: crate::units::excerpt(text),
    };
    let factor = f64::from_str(text.trim()).map_err(|_| refused())?;
    checked(what, factor).map_err(|_| refused())
}

/// What both factors share: making, reading, printing and (de)serializing them as a number.
macro_rules! factor_above_zero {
    ($type:ident, $what:literal) => {
        impl $type {
            /// Makes a factor.
            ///
            /// # Errors
            /// [`FactorError`](crate::FactorError) unless it is finite and above 0.
            pub fn new(factor: f64) -> Result<Self, super::FactorError> {
                super::checked($what, factor).map(Self)
            }

            /// The factor, finite and above 0.
            pub fn factor(self) -> f64 {
                self.0
            }
        }

        impl std::str::FromStr for $type {
            type Err = super::FactorError;

            fn from_str(text: &str) -> Result<Self, super::FactorError> {
                super::read($what, text).map(Self)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_f64(self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                let factor = f64::deserialize(source)?;
                Self::new(factor).map_err(serde::de::Error::custom)
            }
        }
    };
}
use factor_above_zero;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn refuses_what_is_no_finite_factor_above_zero() {
        for text in ["", "0", "-1", "inf", "NaN", "five", "5x"] {
            let aging = text.parse::<Aging>().unwrap_err().to_string();
            assert!(aging.starts_with(&format!("aging `{text}`: ")), "{aging}");
            let growing = text.parse::<Growing>().unwrap_err().to_string();
            assert!(
                growing.starts_with(&format!("growing `{text}`: ")),
                "{growing}"
            );
        }
    }

    #[test]
    fn is_a_number_in_a_configuration() {
        let aging: Aging = serde_json::from_str("3").unwrap();
        assert_eq!(aging.factor(), 3.0);
        assert_eq!(serde_json::to_string(&aging).unwrap(), "3.0");
        assert!(serde_json::from_str::<Growing>("0").is_err());
    }
}
