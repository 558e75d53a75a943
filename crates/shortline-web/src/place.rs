//! Where a request is answered: its site, and the rule of the site that applies. Both are found before anything else is done,
//! and once, because a rule may change the target.

use http::header::HeaderValue;
use http::request::Parts;
use http::{Method, StatusCode, Uri};

use crate::compress::Compress;
use crate::context::Connection;
use crate::files::Plan;
use crate::identity::Identity;
use crate::proxy::routes::Route;
use crate::request::{self, Malformed};
use crate::response_cache::LetIn;
use crate::rules::auth::{Access, Auth};
use crate::rules::forward_auth::About;
use crate::rules::pages::Page;
use crate::rules::{Asker, Granted, Rule, Ruled};
use crate::shared_fields::SharedFields;
use crate::sites::{self, Site, SiteNumber};

/// What is known of a request before it is answered.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are the largest, and moved twice"
)]
pub enum Place {
    /// It is malformed.
    Malformed(Malformed),
    /// No site answers it.
    Nowhere(Box<Plan>),
    /// A site answers it.
    At(Spot),
}

/// A site, and what its rule makes of a request.
#[derive(Clone, Debug)]
pub struct Spot {
    site: SiteNumber,
    rule: Option<usize>,
    /// The answer, where neither a file nor a backend is asked.
    answer: Option<Answer>,
    /// The target, if it is another than was sent.
    uri: Option<Uri>,
    /// The target as it was sent, if it is another now.
    sent: Option<Uri>,
    /// The origin of the page that asks, if it may read the response.
    origin: Option<HeaderValue>,
}

/// The answer of a rule.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer.
    pub plan: Box<Plan>,
    /// What it is.
    pub kind: AnswerKind,
}

/// What the answer of a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// A refusal, which a page may stand for.
    Refusal,
    /// What a page of another origin may do.
    Preflight,
    /// What the rule says.
    Wanted,
}

/// Finds where a request is answered.
pub fn find(connection: &Connection, head: &Parts) -> Place {
    if let Err(malformed) = request::check(head) {
        return Place::Malformed(malformed);
    }
    if let Some(plan) = sites::well_known(connection, head) {
        return Place::Nowhere(plan);
    }
    let number = match sites::of_request(connection, head) {
        Ok(number) => number,
        Err(refusal) => return Place::Nowhere(refusal),
    };
    let mut spot = Spot {
        site: number,
        rule: connection.settings.sites.get(number).rules.find(head),
        answer: None,
        uri: None,
        sent: None,
        origin: None,
    };
    if let Some(rule) = spot.rule(connection) {
        let cors = rule.cors.as_ref();
        let origin = cors.and_then(|cors| cors.allowed(&head.headers));
        match rule.apply(head, asker(connection, head)) {
            Ruled::Goes(uri) => spot.uri = uri,
            Ruled::Answered(answer) => spot.answer = Some(answer),
        }
        spot.origin = origin;
    }
    Place::At(spot)
}

/// Who asks, as a trusted proxy says.
fn asker(connection: &Connection, head: &Parts) -> Asker {
    let asks = connection.asks(&head.headers);
    Asker {
        address: asks.address,
        name: connection.settings.clients.client(asks).name,
    }
}

impl Answer {
    /// An answer of this kind.
    pub fn new(plan: impl Into<Box<Plan>>, kind: AnswerKind) -> Self {
        Self {
            plan: plan.into(),
            kind,
        }
    }
}

impl Place {
    /// The site that answers, if one does.
    pub fn site(&self) -> Option<SiteNumber> {
        match self {
            Self::Malformed(_) | Self::Nowhere(_) => None,
            Self::At(spot) => Some(spot.site),
        }
    }

    /// Whether no certificate is asked of clients here. HTTP/3 asks for none.
    pub fn is_open_to_all(&self, connection: &Connection) -> bool {
        let site = self.site().map(|site| connection.settings.sites.get(site));
        site.is_none_or(|site| site.client_auth.is_none())
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

    /// Its number.
    pub fn number(&self) -> SiteNumber {
        self.site
    }

    /// Answers with a refusal, whatever else would.
    pub fn refuse(&mut self, plan: Plan) {
        self.answer = Some(Answer::new(plan, AnswerKind::Refusal));
    }

    /// The rule that applies, if one does.
    pub fn rule<'a>(&self, connection: &'a Connection) -> Option<&'a Rule> {
        let site = self.site(connection);
        self.rule.map(|index| site.rules.get(index))
    }

    /// The answer of the rule, if it gives one.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// What the rule says about who asks, if that matters to it, without waiting.
    pub fn ask_now(&self, connection: &Connection, head: &Parts) -> Option<Access> {
        let asks_server = self.rule(connection)?.forward_auth.is_some();
        let own = self.auth(connection);
        let own = own.map(|auth| auth.ask_now(&head.method, &head.headers));
        match own {
            None | Some(Access::Granted) if asks_server => Some(Access::Unchecked),
            own => own,
        }
    }

    /// How a request is let in, as far as the rule looks at that.
    ///
    /// # Errors
    /// The answer to whoever may not.
    pub async fn ask(
        &self,
        connection: &Connection,
        identity: Option<&Identity>,
        head: &Parts,
    ) -> Result<Granted, Answer> {
        let mut granted = Granted::default();
        let Some(rule) = self.rule(connection) else {
            return Ok(granted);
        };
        let client = asker(connection, head);
        if let Some(auth) = &rule.auth {
            let asked = auth.ask(client.address, &head.method, &head.headers);
            let asked = Box::pin(asked).await;
            let user = asked.map_err(|plan| Answer::new(plan, AnswerKind::Refusal))?;
            granted.user = Some(user);
        }
        if let Some(auth) = &rule.forward_auth {
            let about = About {
                caller: connection.caller(client.name),
                client: client.address,
                peer: connection.peer,
                secure: connection.secure,
                certificate: connection
                    .identity_for(self.site(connection))
                    .map(AsRef::as_ref),
                identity,
                head,
                sent: self.sent(head),
            };
            granted.said = Box::pin(auth.ask(&about)).await?;
        }
        Ok(granted)
    }

    fn auth<'a>(&self, connection: &'a Connection) -> Option<&'a Auth> {
        self.rule(connection)?.auth.as_ref()
    }

    /// The page in the place of an error's text.
    pub fn page<'a>(&self, connection: &'a Connection, status: StatusCode) -> Option<&'a Page> {
        let of_rule = self
            .rule(connection)
            .and_then(|rule| rule.pages.find(status));
        of_rule.or_else(|| self.site(connection).pages.find(status))
    }

    /// The route of the site that the request belongs to, if there is one.
    pub fn route<'a>(&self, connection: &'a Connection, head: &Parts) -> Option<&'a Route> {
        if self.answer.is_some() {
            return None;
        }
        let uri = self.uri.as_ref().unwrap_or(&head.uri);
        self.site(connection).routes.find(uri.path())
    }

    /// What may be compressed on the fly.
    pub fn compress(&self, connection: &Connection) -> Compress {
        let ruled = self.rule(connection).and_then(|rule| rule.compress);
        ruled.unwrap_or(self.site(connection).compress)
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

    /// Makes of the target what the rule says.
    pub fn change_target(&mut self, head: &mut Parts) {
        if let Some(uri) = self.uri.take() {
            self.sent = Some(std::mem::replace(&mut head.uri, uri));
        }
    }

    /// Whether the rule changes fields that a backend gets.
    pub fn changes_fields(&self, connection: &Connection) -> bool {
        let rule = self.rule(connection);
        rule.is_some_and(|rule| {
            rule.auth.is_some() || rule.forward_auth.is_some() || !rule.request.is_empty()
        })
    }

    /// Makes of the fields that a backend gets what the rule says, for a request that was let in so.
    pub fn change_fields(&self, connection: &Connection, granted: &Granted, head: &mut Parts) {
        if let Some(rule) = self.rule(connection) {
            rule.change(granted, &mut head.headers);
            if rule.forward_auth.is_some() {
                head.extensions.insert(LetIn);
            }
        }
    }

    /// Adds to a response what its site and rule say.
    pub fn complete(&self, connection: &Connection, headers: &mut SharedFields) {
        self.site(connection).complete(connection.secure, headers);
        if let Some(rule) = self.rule(connection) {
            if !rule.response.is_empty() {
                rule.response.apply(headers.change());
            }
            if let Some(cors) = &rule.cors {
                let answer = self.answer.as_ref();
                let is_preflight =
                    answer.is_some_and(|answer| answer.kind == AnswerKind::Preflight);
                cors.complete(self.origin.as_ref(), is_preflight, headers.change());
            }
        }
    }
}
