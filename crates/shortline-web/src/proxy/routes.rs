//! Which requests are proxied: by the start of their path, the longest that fits first.
//!
//! A route's path ends where a segment ends: `/api` is for `/api` and `/api/users`, not for
//! `/apiary`; `/api/` is for what is below only. The path is taken as it came, percent-encoding
//! included, and is forwarded so.

use std::sync::Arc;

use super::admission::Admission;
use super::upstream::Upstream;

/// Where requests of one path prefix go.
#[derive(Clone)]
pub struct Route {
    /// The prefix; starts with a slash.
    pub path: String,
    /// The backends.
    pub upstream: Arc<Upstream>,
    /// Who decides when a request may go; `None`: at once.
    pub admission: Option<Arc<dyn Admission>>,
}

/// All routes.
#[derive(Clone, Default)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// The routes, in any order.
    pub fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Self(routes)
    }

    /// The route of a path; `None`: it is a file's.
    pub fn find(&self, path: &str) -> Option<&Route> {
        self.0.iter().find(|route| is_below(path, &route.path))
    }

    /// All backends, those of several routes once.
    pub fn upstreams(&self) -> Vec<&Arc<Upstream>> {
        let mut upstreams: Vec<&Arc<Upstream>> = Vec::new();
        for route in &self.0 {
            if !upstreams
                .iter()
                .any(|known| Arc::ptr_eq(known, &route.upstream))
            {
                upstreams.push(&route.upstream);
            }
        }
        upstreams
    }
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_a_segment_ends() {
        for (path, prefix, below) in [
            ("/api", "/api", true),
            ("/api/", "/api", true),
            ("/api/users", "/api", true),
            ("/apiary", "/api", false),
            ("/", "/", true),
            ("/x", "/", true),
            ("/api", "/api/", false),
            ("/api/x", "/api/", true),
            ("*", "/", false),
        ] {
            assert_eq!(is_below(path, prefix), below, "{path} below {prefix}");
        }
    }
}
