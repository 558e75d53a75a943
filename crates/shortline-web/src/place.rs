//! Where a request is answered: its site, and the rule of the site that applies. Both are found before anything else is done,
//! and once, because a rule may change the target.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, Method, Uri};

use crate::context::Connection;
use crate::files::Plan;
use crate::proxy::routes::Route;
use crate::request::{self, Malformed};
use crate::rules::{Rule, Ruled};
use crate::sites::{self, Site, SiteNumber};

/// What is known of a request before it is answered.
pub enum Place {
    /// It is malformed.
    Malformed(Malformed),
    /// There is an answer without a file or backend.
    Answered {
        /// The answer.
        plan: Box<Plan>,
        /// The site whose rule says so, if it is a rule.
        site: Option<SiteNumber>,
    },
    /// Files or a backend of a site answer it.
    At(Spot),
}

/// A site, and what its rule makes of a request.
#[derive(Clone, Debug)]
pub struct Spot {
    site: SiteNumber,
    rule: Option<usize>,
    /// The target, if it is another than was sent.
    uri: Option<Uri>,
    /// The target as it was sent, if it is another now.
    sent: Option<Uri>,
}

/// Finds where a request is answered.
pub fn find(connection: &Connection, head: &Parts) -> Place {
    if let Err(malformed) = request::check(head) {
        return Place::Malformed(malformed);
    }
    if let Some(plan) = sites::well_known(connection, head) {
        return Place::Answered { plan, site: None };
    }
    let number = match sites::of_request(connection, head) {
        Ok(number) => number,
        Err(plan) => return Place::Answered { plan, site: None },
    };
    let site = connection.settings.sites.get(number);
    let rule = site.rules.find(head);
    let ruled = rule.map(|index| site.rules.get(index).apply(head, client(connection, head)));
    let uri = match ruled {
        None => None,
        Some(Ruled::Goes(uri)) => uri,
        Some(Ruled::Answered(mut plan)) => {
            site.complete(connection.secure, &mut plan.headers);
            return Place::Answered {
                plan,
                site: Some(number),
            };
        }
    };
    Place::At(Spot {
        site: number,
        rule,
        uri,
        sent: None,
    })
}

/// The client's address, as a trusted proxy names it.
fn client(connection: &Connection, head: &Parts) -> IpAddr {
    connection.asks(&head.headers).address
}

impl Place {
    /// The site that answers, if one does.
    pub fn site(&self) -> Option<SiteNumber> {
        match self {
            Self::Malformed(_) => None,
            Self::Answered { site, .. } => *site,
            Self::At(spot) => Some(spot.site),
        }
    }

    /// Whether a backend may answer.
    pub fn has_route(&self, connection: &Connection, head: &Parts) -> bool {
        matches!(self, Self::At(spot) if spot.route(connection, head).is_some())
    }
}

impl Spot {
    /// The site.
    pub fn site<'a>(&self, connection: &'a Connection) -> &'a Site {
        connection.settings.sites.get(self.site)
    }

    /// The rule that applies, if one does.
    pub fn rule<'a>(&self, connection: &'a Connection) -> Option<&'a Rule> {
        let site = self.site(connection);
        self.rule.map(|index| site.rules.get(index))
    }

    /// The route of the site that the request belongs to, if there is one.
    pub fn route<'a>(&self, connection: &'a Connection, head: &Parts) -> Option<&'a Route> {
        let uri = self.uri.as_ref().unwrap_or(&head.uri);
        self.site(connection).routes.find(uri.path())
    }

    /// The targets of files that the rule tries; none for methods that no file answers.
    pub fn targets(&self, connection: &Connection, head: &Parts) -> Vec<String> {
        match self.rule(connection) {
            Some(rule) if [Method::GET, Method::HEAD].contains(&head.method) => {
                rule.targets(head).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The target as the client sent it, of a request that has been changed.
    pub fn sent<'a>(&'a self, head: &'a Parts) -> &'a Uri {
        self.sent.as_ref().unwrap_or(&head.uri)
    }

    /// Makes of the request what its rule says.
    pub fn change(&mut self, connection: &Connection, head: &mut Parts) {
        if let Some(uri) = self.uri.take() {
            self.sent = Some(std::mem::replace(&mut head.uri, uri));
        }
        if let Some(rule) = self.rule(connection) {
            rule.request.apply(&mut head.headers);
        }
    }

    /// Adds to a response what its site and rule say.
    pub fn complete(&self, connection: &Connection, headers: &mut HeaderMap) {
        self.site(connection).complete(connection.secure, headers);
        if let Some(rule) = self.rule(connection) {
            rule.response.apply(headers);
        }
    }
}
