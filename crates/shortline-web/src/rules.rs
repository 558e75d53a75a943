//! The rules of a site: what it does with some of its requests besides serving a file or passing them on.
//!
//! | a rule | |
//! |---|---|
//! | matches by | path, method, a header field; what it does not name matches all |
//! | is applied | if it is the first that matches, in the order of the file; no other is |
//! | refuses | clients that are not in its networks (403) |
//! | answers | by a redirect or a short text, and a preflight ([`cors`]) |
//! | limits | how many requests a client makes ([`rate`]); a response's bandwidth ([`crate::pace`]) |
//! | lets in | users with a password ([`auth`]), and whom another server lets in ([`forward_auth`]) |
//! | sends | a page in the place of an error's text ([`pages`]) |
//! | changes | the target, the files that are tried, fields of request and response |
//!
//! Paths are compared as a file's are ([`pattern`]): decoded, with single slashes. So no spelling of a path gets round a rule. The
//! target changes before it is looked up, whether it names a file or belongs to a route. The body of an answer is in memory, and
//! its response a job of the link like all others.

pub mod auth;
pub mod cors;
mod fields;
pub mod forward_auth;
pub mod pages;
pub mod pattern;
pub mod rate;
pub mod template;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, LOCATION};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode, Uri};
use shortline_sched::Network;
use shortline_tls::names;

use crate::compress::Compress;
use crate::files::paths::encode_path;
use crate::files::{Plan, PlanBody};
use crate::pace::Bandwidth;
use crate::place::{Answer, AnswerKind};
use crate::proxy::UpstreamOptions;
use crate::proxy::head::host_name;
use crate::proxy::routes::is_below;
use crate::proxy::upstream::Upstream;
use crate::shared_fields::SharedFields;
use auth::Auth;
use auth::users::Users;
use cors::Cors;
pub use fields::Changes;
use fields::keep_for_backend;
use forward_auth::{ForwardAuth, Said};
use pages::Pages;
use pattern::Pattern;
use rate::Limiter;
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
    /// What pages of other origins may do.
    pub cors: Option<Cors>,
    /// How many requests a client may make.
    pub rate: Option<Limiter>,
    /// Who may go on.
    pub auth: Option<Auth>,
    /// The server that decides who may go on.
    pub forward_auth: Option<ForwardAuth>,
    /// Pages in the place of errors' texts. They go before those of the site.
    pub pages: Pages,
    /// The answer, if it has one.
    pub reply: Option<Reply>,
    /// What the path becomes.
    pub path: Option<PathChange>,
    /// Targets of files that are tried in this order, before a route.
    pub try_files: Vec<Template>,
    /// The most bandwidth that a response gets.
    pub bandwidth: Option<Bandwidth>,
    /// What is compressed on the fly. `None`: as the site says.
    pub compress: Option<Compress>,
    /// Changes of the request's fields, for backends.
    pub request: Changes,
    /// Changes of the response's fields.
    pub response: Changes,
}

/// Which requests a rule is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// Hosts. None: all of the site.
    pub hosts: Vec<names::Pattern>,
    /// Paths.
    pub path: Option<Pattern>,
    /// Methods. None: all.
    pub methods: Vec<Method>,
    /// A field, and its value if that matters.
    pub header: Option<(HeaderName, Option<Pattern>)>,
}

/// An answer that needs neither a file nor a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
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
        /// The fields that say so.
        fields: SharedFields,
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
    Answered(Answer),
    /// It goes on, with another target if there is one.
    Goes(Option<Uri>),
}

/// How a request was let in.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// Who asks, if that was checked.
    pub user: Option<Arc<str>>,
    /// What another server says of it.
    pub said: Said,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// The client's address.
    pub address: IpAddr,
    /// Its name in the order.
    pub name: u128,
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

    /// Whether a rule has files compressed.
    pub fn compress_files(&self) -> bool {
        let asked = |rule: &Rule| rule.compress.is_some_and(|compress| compress.files);
        self.all.iter().any(asked)
    }

    /// Reads the files of users that the rules name.
    ///
    /// # Errors
    /// What `read` says.
    pub fn read_users<E>(
        &mut self,
        mut read: impl FnMut(&Path) -> Result<Arc<Users>, E>,
    ) -> Result<(), E> {
        for auth in self.all.iter_mut().filter_map(|rule| rule.auth.as_mut()) {
            let users = read(auth.file())?;
            auth.set_users(users);
        }
        Ok(())
    }

    /// Opens the servers that decide who may ask.
    ///
    /// # Errors
    /// What `open` says.
    pub fn open_servers<E>(
        &mut self,
        mut open: impl FnMut(&UpstreamOptions) -> Result<Arc<Upstream>, E>,
    ) -> Result<(), E> {
        for rule in &mut self.all {
            if let Some(auth) = &mut rule.forward_auth {
                let upstream = open(auth.options())?;
                auth.set_upstream(upstream);
            }
        }
        Ok(())
    }

    /// The servers that decide who may ask.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        let auths = self
            .all
            .iter()
            .filter_map(|rule| rule.forward_auth.as_ref());
        auths.filter_map(ForwardAuth::upstream)
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
        let is_host = || {
            let host = host_name(head).unwrap_or_default();
            self.hosts.is_empty() || self.hosts.iter().any(|name| name.stands_for(host))
        };
        is_method && is_path() && is_host() && self.has_header(&head.headers)
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
        let is_covered =
            |theirs: &names::Pattern| self.hosts.iter().any(|ours| ours.covers(theirs));
        let has_hosts =
            self.hosts.is_empty() || !other.hosts.is_empty() && other.hosts.iter().all(is_covered);
        has_path && has_methods && has_header && has_hosts
    }
}

impl Reply {
    /// The answer with a text.
    pub fn respond(status: StatusCode, body: Bytes) -> Self {
        Self::Respond {
            status,
            fields: Plan::with_text(status, &Method::GET, body.clone()).headers,
            body,
        }
    }
}

impl Rule {
    /// Applies what comes before a file or backend is asked.
    pub fn apply(&self, head: &Parts, asker: Asker) -> Ruled {
        if !self.permits(asker.address) {
            return refused(Plan::text(StatusCode::FORBIDDEN, &head.method));
        }
        let over = |limiter: &Limiter| limiter.count(asker.name, &head.method, &head.headers);
        if let Some(plan) = self.rate.as_ref().and_then(over) {
            return refused(plan);
        }
        // A browser sends no credentials with it.
        if let Some(plan) = self.cors.as_ref().and_then(|cors| cors.preflight(head)) {
            return Ruled::Answered(Answer::new(plan, AnswerKind::Preflight));
        }
        if let Some(reply) = &self.reply {
            return Ruled::Answered(Answer::new(self.replied(reply, head), AnswerKind::Wanted));
        }
        let Some(change) = &self.path else {
            return Ruled::Goes(None);
        };
        match self.changed(change, head) {
            Some(uri) => Ruled::Goes(Some(uri)),
            None => refused(Plan::text(StatusCode::BAD_REQUEST, &head.method)),
        }
    }

    /// Changes the fields of a request for a backend, which was let in so. The client cannot take such a field away from the
    /// backend by naming it in `Connection`.
    pub fn change(&self, granted: &Granted, headers: &mut HeaderMap) {
        let names = self.request.names();
        let user_field = self.auth.as_ref().and_then(Auth::user_field);
        let copied = self.forward_auth.iter().flat_map(ForwardAuth::copied);
        let ours: Vec<&HeaderName> = names.chain(user_field).chain(copied).collect();
        if !ours.is_empty() {
            keep_for_backend(headers, &ours);
        }
        self.request.apply(headers);
        if let (Some(auth), Some(user)) = (&self.auth, &granted.user) {
            auth.tell(user, headers);
        }
        if let Some(auth) = &self.forward_auth {
            auth.tell(&granted.said.fields, headers);
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

    fn replied(&self, reply: &Reply, head: &Parts) -> Plan {
        match reply {
            Reply::Redirect { to, status } => {
                let Ok(location) = HeaderValue::try_from(self.filled(to, head)) else {
                    return Plan::text(StatusCode::BAD_REQUEST, &head.method);
                };
                let mut plan = Plan::text(*status, &head.method);
                plan.headers.change().insert(LOCATION, location);
                plan
            }
            Reply::Respond {
                status,
                body,
                fields,
            } => Plan {
                status: *status,
                headers: fields.clone(),
                body: PlanBody::of_bytes(&head.method, body.clone()),
            },
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

fn refused(plan: Plan) -> Ruled {
    Ruled::Answered(Answer::new(plan, AnswerKind::Refusal))
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
