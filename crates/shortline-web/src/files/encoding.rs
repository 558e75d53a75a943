//! Content codings by `Accept-Encoding` (RFC 9110 12.5.3).
//!
//! Among the available codings, the one with the highest weight wins. At equal weights it is the
//! one that is usually smallest: zstd, br, gzip, none. A client that names codings but not
//! `identity` gets `identity` as the last resort. A client without the field gets no coding. A
//! member that cannot be parsed counts as not sent. If nothing available is acceptable, not even
//! `identity`, the answer is 406.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A coding of a precompressed sibling, or of what is compressed on the fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `.zst`, RFC 8878.
    Zstd,
    /// `.br`, RFC 7932.
    Brotli,
    /// `.gz`, RFC 1952.
    Gzip,
}

impl Coding {
    /// All codings, the usually smallest first.
    pub const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    /// The name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// The suffix of a sibling's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }
}

/// The weights a client gives, in thousandths. `None` if it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    codings: [Option<u16>; 3],
    identity: Option<u16>,
    any: Option<u16>,
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The file as it is.
    Identity,
    /// The sibling in this coding.
    Coded(Coding),
    /// Nothing available is acceptable.
    NotAcceptable,
}

/// Chooses among the available codings.
pub fn choose(headers: &HeaderMap, at_hand: impl Fn(Coding) -> bool) -> Choice {
    let mut accepted = Accepted::default();
    for value in headers.get_all(ACCEPT_ENCODING) {
        accepted.add(value.as_bytes());
    }
    accepted.choose(at_hand)
}

impl Accepted {
    /// Adds the members of one field line.
    pub fn add(&mut self, value: &[u8]) {
        for member in value.split(|byte| *byte == b',') {
            if let Some((name, weight)) = parse_member(member) {
                self.set(name, weight);
            }
        }
    }

    /// The best of the available codings.
    pub fn choose(&self, at_hand: impl Fn(Coding) -> bool) -> Choice {
        let mut best = (0, Choice::NotAcceptable);
        for coding in Coding::ALL {
            let weight = self.codings[coding as usize].or(self.any).unwrap_or(0);
            if weight > best.0 && at_hand(coding) {
                best = (weight, Choice::Coded(coding));
            }
        }
        // If unnamed, identity is acceptable but comes after whatever was asked for.
        let identity = self.identity.or(self.any);
        let preferred = identity.is_some_and(|weight| weight > best.0);
        let last_resort = identity.is_none() && best.0 == 0;
        if preferred || last_resort {
            Choice::Identity
        } else {
            best.1
        }
    }

    /// Sets a coding's weight. The first mention of a coding counts.
    fn set(&mut self, name: &[u8], weight: u16) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let slot = if is("identity") {
            &mut self.identity
        } else if is("*") {
            &mut self.any
        } else if is("x-gzip") {
            &mut self.codings[Coding::Gzip as usize]
        } else if let Some(coding) = Coding::ALL.into_iter().find(|coding| is(coding.name())) {
            &mut self.codings[coding as usize]
        } else {
            return;
        };
        slot.get_or_insert(weight);
    }
}

fn parse_member(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.split(|byte| *byte == b';');
    let name = parts.next()?.trim_ascii();
    if name.is_empty() {
        return None;
    }
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => parse_weight(parameter.trim_ascii())?,
    };
    parts.next().is_none().then_some((name, weight))
}

/// Parses `q=` with a qvalue of RFC 9110 12.4.2: 0 to 1 with at most three decimals.
fn parse_weight(parameter: &[u8]) -> Option<u16> {
    let value = parameter
        .strip_prefix(b"q=")
        .or_else(|| parameter.strip_prefix(b"Q="))?;
    let (whole, decimals) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    for (digit, unit) in decimals.iter().zip([100, 10, 1]) {
        weight += u16::from(digit.is_ascii_digit().then(|| digit - b'0')?) * unit;
    }
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(value: &str) -> Choice {
        with(value, &Coding::ALL)
    }

    fn with(value: &str, at_hand: &[Coding]) -> Choice {
        let mut accepted = Accepted::default();
        accepted.add(value.as_bytes());
        accepted.choose(|coding| at_hand.contains(&coding))
    }

    #[test]
    fn no_field_means_no_coding() {
        assert_eq!(choose(&HeaderMap::new(), |_| true), Choice::Identity);
        assert_eq!(all(""), Choice::Identity);
    }

    #[test]
    fn the_highest_weight_wins_then_our_order() {
        assert_eq!(all("gzip, deflate, br, zstd"), Choice::Coded(Coding::Zstd));
        assert_eq!(all("gzip;q=1.0, br;q=0.9"), Choice::Coded(Coding::Gzip));
        assert_eq!(all("GZIP ; Q=0.001"), Choice::Coded(Coding::Gzip));
        assert_eq!(all("x-gzip"), Choice::Coded(Coding::Gzip));
        assert_eq!(
            with("gzip, br", &[Coding::Zstd, Coding::Gzip]),
            Choice::Coded(Coding::Gzip)
        );
        assert_eq!(with("br", &[Coding::Gzip]), Choice::Identity);
    }

    #[test]
    fn identity_is_the_last_resort_unless_weighed() {
        assert_eq!(all("br;q=0.1"), Choice::Coded(Coding::Brotli));
        assert_eq!(all("br;q=0.1, identity;q=0.5"), Choice::Identity);
        assert_eq!(
            all("br;q=0.5, identity;q=0.5"),
            Choice::Coded(Coding::Brotli)
        );
        assert_eq!(all("br;q=0"), Choice::Identity);
    }

    #[test]
    fn a_star_speaks_for_what_is_not_named() {
        assert_eq!(all("*"), Choice::Coded(Coding::Zstd));
        assert_eq!(all("zstd;q=0, *"), Choice::Coded(Coding::Brotli));
        assert_eq!(all("*;q=0"), Choice::NotAcceptable);
        assert_eq!(all("identity, *;q=0"), Choice::Identity);
    }

    #[test]
    fn refused_identity_leaves_a_coding_or_nothing() {
        assert_eq!(all("identity;q=0, gzip"), Choice::Coded(Coding::Gzip));
        assert_eq!(with("identity;q=0, gzip", &[]), Choice::NotAcceptable);
        assert_eq!(all("identity;q=0"), Choice::NotAcceptable);
    }

    #[test]
    fn members_that_cannot_be_parsed_count_as_not_sent() {
        for value in [
            "br;q=2",
            "br;q=1.001",
            "br;q=0.1234",
            "br;q=",
            "br;level=3",
            "br;q=1;x",
            ";q=1",
        ] {
            assert_eq!(all(value), Choice::Identity, "{value}");
        }
    }

    #[test]
    fn lines_add_up() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT_ENCODING, "br;q=0.5".parse().expect("a field value"));
        headers.append(ACCEPT_ENCODING, "gzip".parse().expect("a field value"));
        assert_eq!(choose(&headers, |_| true), Choice::Coded(Coding::Gzip));
    }

    proptest! {
        #[test]
        fn only_what_is_at_hand_is_chosen(value in any::<Vec<u8>>(), mask in 0u8..8) {
            let mut accepted = Accepted::default();
            accepted.add(&value);
            if let Choice::Coded(coding) = accepted.choose(|coding| mask >> (coding as u8) & 1 == 1) {
                prop_assert_eq!(mask >> (coding as u8) & 1, 1);
            }
        }

        #[test]
        fn weights_order_codings(gzip in 0u16..=1000, brotli in 0u16..=1000) {
            let line = format!(
                "gzip;q={}.{:03}, br;q={}.{:03}",
                gzip / 1000, gzip % 1000, brotli / 1000, brotli % 1000
            );
            let expected = match (gzip, brotli) {
                (0, 0) => Choice::Identity,
                _ if brotli >= gzip => Choice::Coded(Coding::Brotli),
                _ => Choice::Coded(Coding::Gzip),
            };
            prop_assert_eq!(all(&line), expected);
        }
    }
}
