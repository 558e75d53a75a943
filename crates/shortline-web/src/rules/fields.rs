//! Changes of header fields.

use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use crate::proxy::head::{connection_options, remove_where};

/// Changes of header fields: first those to remove, then those to set, then those to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Fields to remove.
    pub remove: Vec<HeaderName>,
    /// Fields with the only value that they get.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Fields with one more value.
    pub add: Vec<(HeaderName, HeaderValue)>,
}

impl Changes {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// The names of fields that are set or added.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.set.iter().chain(&self.add).map(|(name, _)| name)
    }

    /// Applies the changes.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
        for (name, value) in &self.add {
            headers.append(name, value.clone());
        }
    }
}

/// Removes a field in any spelling: `-` and `_` are the same to programs that read fields as variables.
pub fn remove_alike(headers: &mut HeaderMap, field: &HeaderName) {
    remove_where(headers, |name| {
        name.as_str().replace('_', "-") == field.as_str().replace('_', "-")
    });
}

/// Lets these fields get to the backend: what the client sends of them for one connection goes, and `Connection` no longer names
/// them.
pub fn keep_for_backend(headers: &mut HeaderMap, names: &[&HeaderName]) {
    let named: Vec<HeaderName> = connection_options(headers).collect();
    if !named.iter().any(|option| names.contains(&option)) {
        return;
    }
    let (ours, others): (Vec<HeaderName>, Vec<HeaderName>) = named
        .into_iter()
        .partition(|option| names.contains(&option));
    for name in ours {
        headers.remove(name);
    }
    let others: Vec<&str> = others.iter().map(HeaderName::as_str).collect();
    match HeaderValue::try_from(others.join(", ")) {
        Ok(value) if !others.is_empty() => headers.insert(CONNECTION, value),
        _ => headers.remove(CONNECTION),
    };
}
