//! The header fields of a response. All responses of a file have the same, and so have those of a rule's text. They share one
//! map until one of them is changed, as a site or a rule may say.

use std::ops::Deref;
use std::sync::Arc;

use http::HeaderMap;

/// Header fields that several responses may share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedFields(Arc<HeaderMap>);

impl SharedFields {
    /// The fields, to be changed: from now on they are those of this response alone.
    pub fn change(&mut self) -> &mut HeaderMap {
        Arc::make_mut(&mut self.0)
    }

    /// The fields, of this response alone.
    #[cfg(feature = "http3")]
    pub fn into_map(self) -> HeaderMap {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for SharedFields {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.0
    }
}

impl From<HeaderMap> for SharedFields {
    fn from(fields: HeaderMap) -> Self {
        Self(Arc::new(fields))
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
        assert_eq!(
            (&kept[AGE], &one[AGE]),
            (&HeaderValue::from(1), &HeaderValue::from(2))
        );
    }
}
