//! The rules of a site: what it does with some of its requests besides serving a file or passing them on.
//!
//! | a rule | |
//! |---|---|
//! | matches by | path, method, a header field; what it does not name matches all |
//! | is applied | if it is the first that matches, in the order of the file; no other is |
//! | refuses | clients that are not in its networks (403) |
//! | answers | by a redirect or a short text |
//! | changes | the target, the files that are tried, fields of request and response |
//!
//! Paths are compared as a file's are ([`pattern`]): decoded, with single slashes. So no spelling of a path gets round a rule. The
//! target changes before it is looked up, whether it names a file or belongs to a route. The body of an answer is in memory, and
//! its response a job of the link like all others.

pub mod pattern;
pub mod template;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, LOCATION};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri};
use shortline_sched::Network;

use crate::files::Plan;
use crate::files::paths::encode_path;
use crate::proxy::head::host_name;
use crate::proxy::routes::is_below;
use pattern::Pattern;
use template::{Filling, Template};

/// A rule; see the module's text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Which requests it is for.
    pub when: When,
    /// Only clients of these networks may go on. None: all.
    pub allow: Vec<Network>,
    /// Clients of these networks may not.
    pub deny: Vec<Network>,
    /// The answer, if it has one.
    pub answer: Option<Answer>,
    /// What the path becomes.
    pub path: Option<PathChange>,
    /// Targets of files that are tried in this order, before a route.
    pub try_files: Vec<Template>,
    /// Changes of the request's fields, for backends.
    pub request: Changes,
    /// Changes of the response's fields.
    pub response: Changes,
}

/// Which requests a rule is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// Paths.
    pub path: Option<Pattern>,
    /// Methods. None: all.
    pub methods: Vec<Method>,
    /// A field, and its value if that matters.
    pub header: Option<(HeaderName, Option<Pattern>)>,
}

/// An answer that needs neither a file nor a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Somewhere else.
    Redirect {
        /// Where.
        to: Template,
        /// How: 301, 302, 303, 307 or 308.
        status: StatusCode,
    },
    /// A text.
    Respond {
        /// The status.
        status: StatusCode,
        /// The body, plain text.
        body: Bytes,
    },
}

/// A change of the path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathChange {
    /// The whole target.
    Rewrite(Template),
    /// Without this beginning, if it has it.
    Strip(String),
}

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

/// The rules of a site in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// What each is for, side by side: a request looks at many of these, and at one rule.
    whens: Vec<When>,
    all: Vec<Rule>,
}

/// A rule that no request reaches.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "rule {later} never applies: rule {earlier} takes all of its requests; put it before that, or leave it out"
)]
pub struct Unreachable {
    /// The number of the rule, from 1.
    pub later: usize,
    /// The number of the one before it.
    pub earlier: usize,
}

/// What a rule makes of a request.
pub enum Ruled {
    /// The answer.
    Answered(Box<Plan>),
    /// It goes on, with another target if there is one.
    Goes(Option<Uri>),
}

impl Rules {
    /// The rules in their order.
    ///
    /// # Errors
    /// [`Unreachable`]
    pub fn new(rules: Vec<Rule>) -> Result<Self, Unreachable> {
        for (later, rule) in rules.iter().enumerate() {
            let earlier = rules[..later]
                .iter()
                .position(|before| before.when.covers(&rule.when));
            if let Some(earlier) = earlier {
                return Err(Unreachable {
                    later: later + 1,
                    earlier: earlier + 1,
                });
            }
        }
        Ok(Self {
            whens: rules.iter().map(|rule| rule.when.clone()).collect(),
            all: rules,
        })
    }

    /// The first rule that matches, and its number.
    pub fn find(&self, head: &Parts) -> Option<usize> {
        if self.whens.is_empty() {
            return None;
        }
        let path = pattern::canonical(head.uri.path());
        self.whens.iter().position(|when| when.matches(head, &path))
    }

    /// A rule by its number.
    pub fn get(&self, index: usize) -> &Rule {
        &self.all[index]
    }
}

impl When {
    fn matches(&self, head: &Parts, path: &str) -> bool {
        let is_path = || {
            self.path
                .as_ref()
                .is_none_or(|pattern| pattern.matches(path))
        };
        let is_method = self.methods.is_empty() || self.methods.contains(&head.method);
        is_method && is_path() && self.has_header(&head.headers)
    }

    fn has_header(&self, headers: &HeaderMap) -> bool {
        let Some((name, wanted)) = &self.header else {
            return true;
        };
        let mut values = headers.get_all(name).iter();
        match wanted {
            None => values.next().is_some(),
            Some(wanted) => {
                values.any(|value| value.to_str().is_ok_and(|value| wanted.matches(value)))
            }
        }
    }

    /// Whether all requests of `other` surely match this, too.
    fn covers(&self, other: &Self) -> bool {
        let has_path = match (&self.path, &other.path) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ours), Some(theirs)) => ours.covers(theirs),
        };
        let has_methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other
                    .methods
                    .iter()
                    .all(|method| self.methods.contains(method));
        let has_header = match (&self.header, &other.header) {
            (None, _) => true,
            (Some((ours, None)), Some((theirs, _))) => ours == theirs,
            (ours, theirs) => ours == theirs,
        };
        has_path && has_methods && has_header
    }
}

impl Rule {
    /// Applies what comes before a file or backend is asked.
    pub fn apply(&self, head: &Parts, client: IpAddr) -> Ruled {
        if !self.permits(client) {
            return Ruled::Answered(Plan::text(StatusCode::FORBIDDEN, &head.method).into());
        }
        if let Some(answer) = &self.answer {
            let mut plan = self.answered(answer, head);
            self.response.apply(&mut plan.headers);
            return Ruled::Answered(plan.into());
        }
        let Some(change) = &self.path else {
            return Ruled::Goes(None);
        };
        match self.changed(change, head) {
            Some(uri) => Ruled::Goes(Some(uri)),
            None => Ruled::Answered(Plan::text(StatusCode::BAD_REQUEST, &head.method).into()),
        }
    }

    /// The targets of files to try, if there are some.
    pub fn targets(&self, head: &Parts) -> impl Iterator<Item = String> {
        let path = pattern::canonical(head.uri.path()).into_owned();
        let query = head.uri.query().map(str::to_owned);
        self.try_files.iter().map(move |template| {
            template.fill(&Filling {
                path: &path,
                rest: "",
                query: query.as_deref(),
                host: "",
            })
        })
    }

    fn permits(&self, client: IpAddr) -> bool {
        let has = |networks: &[Network]| networks.iter().any(|network| network.has(client));
        !has(&self.deny) && (self.allow.is_empty() || has(&self.allow))
    }

    fn answered(&self, answer: &Answer, head: &Parts) -> Plan {
        match answer {
            Answer::Redirect { to, status } => {
                let Ok(location) = HeaderValue::try_from(self.filled(to, head)) else {
                    return Plan::text(StatusCode::BAD_REQUEST, &head.method);
                };
                let mut plan = Plan::text(*status, &head.method);
                plan.headers.insert(LOCATION, location);
                plan
            }
            Answer::Respond { status, body } => {
                Plan::with_text(*status, &head.method, body.clone())
            }
        }
    }

    fn filled(&self, template: &Template, head: &Parts) -> String {
        let path = pattern::canonical(head.uri.path());
        let rest = self
            .when
            .path
            .as_ref()
            .and_then(|pattern| pattern.rest(&path));
        template.fill(&Filling {
            path: &path,
            rest: rest.unwrap_or(""),
            query: head.uri.query(),
            host: host_name(head).unwrap_or(""),
        })
    }

    /// The target that the change makes. `None`: it would be none.
    fn changed(&self, change: &PathChange, head: &Parts) -> Option<Uri> {
        let target = match change {
            PathChange::Rewrite(template) => self.filled(template, head),
            PathChange::Strip(beginning) => stripped(beginning, &head.uri)?,
        };
        let mut parts = head.uri.clone().into_parts();
        parts.path_and_query = Some(target.parse::<PathAndQuery>().ok()?);
        Uri::from_parts(parts).ok()
    }
}

/// The target without the beginning of its path, which must end where a segment does. As sent, unless only another
/// spelling of the path begins so.
fn stripped(beginning: &str, uri: &Uri) -> Option<String> {
    let target = uri.path_and_query()?.as_str();
    if is_below(uri.path(), beginning) {
        return Some(with_slash(&target[beginning.len()..]));
    }
    let path = pattern::canonical(uri.path());
    if !is_below(&path, beginning) {
        return Some(target.to_owned());
    }
    let rest = with_slash(&path[beginning.len()..]);
    let query = uri.query().map(|query| format!("?{query}"));
    Some(format!(
        "{}{}",
        encode_path(&rest),
        query.unwrap_or_default()
    ))
}

fn with_slash(rest: &str) -> String {
    match rest.starts_with('/') {
        true => rest.to_owned(),
        false => format!("/{rest}"),
    }
}

impl Changes {
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
