//! Which requests are proxied. The longest route that the path begins with decides.
//!
//! A route's path ends at the end of a segment: `/api` covers `/api` and `/api/users`, but not
//! `/apiary`. `/api/` covers only what is below it. The path is compared and forwarded as received,
//! with its percent-encoding.

use std::sync::Arc;

use super::admission::Admission;
use super::mirror::Mirror;
use super::trail::Addressee;
use super::upstream::Upstream;
use crate::programs::Programs;
use crate::response_cache::ResponseCache;

/// Where requests of one path prefix go.
#[derive(Clone)]
pub struct Route {
    /// The prefix; starts with a slash.
    pub path: String,
    /// The backends.
    pub upstream: Arc<Upstream>,
    /// Who decides when a request may go. `None`: it goes at once.
    pub admission: Option<Arc<dyn Admission>>,
    /// Which program answers, if the backends run programs of a folder (FastCGI).
    pub programs: Option<Arc<Programs>>,
    /// What is kept of its responses, if it is to be.
    pub cache: Option<Arc<ResponseCache>>,
    /// Where its requests are copied to, if they are.
    pub mirror: Option<Arc<Mirror>>,
}

impl Route {
    /// A route whose requests go at once, and whose backends need no folder.
    pub fn new(path: String, upstream: Arc<Upstream>) -> Self {
        Self {
            path,
            upstream,
            admission: None,
            programs: None,
            cache: None,
            mirror: None,
        }
    }

    /// As the log names it.
    pub fn addressee(&self) -> Addressee<'_> {
        Addressee {
            label: &self.path,
            upstream: &self.upstream,
        }
    }
}

/// All routes.
#[derive(Clone, Default)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// Takes the routes in any order.
    pub fn new(mut routes: Vec<Route>) -> Self {
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.len()));
        Self(routes)
    }

    /// The route of a path. `None`: the path names a file.
    pub fn find(&self, path: &str) -> Option<&Route> {
        self.0.iter().find(|route| is_below(path, &route.path))
    }

    /// The routes, each changed.
    ///
    /// # Errors
    /// The first of `change`.
    pub fn map<E>(&self, change: impl FnMut(Route) -> Result<Route, E>) -> Result<Self, E> {
        let changed: Result<Vec<Route>, E> = self.0.iter().cloned().map(change).collect();
        changed.map(Self)
    }

    /// The upstream of each route, and those that requests are copied to.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.0.iter().flat_map(|route| {
            let mirror = route.mirror.as_ref().map(|mirror| mirror.upstream());
            std::iter::once(&route.upstream).chain(mirror)
        })
    }
}

/// Whether a path begins with a prefix that ends at the end of a segment.
pub fn is_below(path: &str, prefix: &str) -> bool {
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
