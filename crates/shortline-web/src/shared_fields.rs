//! The header fields of a response. All responses of a file have the same, and so have those of a rule's text. They share one
//! map until one of them is changed, as a site or a rule may say.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;

use crate::message::head::field_bytes;

/// Header fields that several responses may share.
#[derive(Clone, Debug, Default)]
pub struct SharedFields(Arc<Kept>);

#[derive(Clone, Debug, Default)]
struct Kept {
    fields: HeaderMap,
    text_bytes: OnceLock<usize>,
}

impl SharedFields {
    /// The fields, to be changed: from now on they are those of this response alone.
    pub fn change(&mut self) -> &mut HeaderMap {
        let kept = Arc::make_mut(&mut self.0);
        kept.text_bytes.take();
        &mut kept.fields
    }

    /// How many bytes they are in a head of HTTP/1.1.
    pub fn text_bytes(&self) -> usize {
        let sum = || {
            self.iter()
                .map(|(name, value)| field_bytes(name, value))
                .sum()
        };
        *self.0.text_bytes.get_or_init(sum)
    }

    /// The fields, of this response alone.
    #[cfg(feature = "http3")]
    pub fn into_map(self) -> HeaderMap {
        Arc::unwrap_or_clone(self.0).fields
    }
}

impl Deref for SharedFields {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.0.fields
    }
}

impl PartialEq for SharedFields {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl From<HeaderMap> for SharedFields {
    fn from(fields: HeaderMap) -> Self {
        Self(Arc::new(Kept {
            fields,
            text_bytes: OnceLock::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use http::header::{AGE, HeaderValue};

    use super::*;

    #[test]
    fn a_change_is_seen_in_one_response_only() {
        let kept = SharedFields::from(HeaderMap::from_iter([(AGE, HeaderValue::from(1))]));
        let mut one = kept.clone();
        one.change().insert(AGE, HeaderValue::from(2));
        assert_eq!((kept.text_bytes(), one.text_bytes()), (8, 8));
        one.change().insert(AGE, HeaderValue::from(22));
        assert_eq!((kept.text_bytes(), one.text_bytes()), (8, 9));
        assert_eq!(
            (&kept[AGE], &one[AGE]),
            (&HeaderValue::from(1), &HeaderValue::from(22))
        );
    }
}
