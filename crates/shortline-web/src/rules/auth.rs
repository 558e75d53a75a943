//! Who may ask: users with a password (Basic, RFC 7617), of a file as htpasswd writes it ([`users`]).
//!
//! | request | answer |
//! |---|---|
//! | without credentials, with those of nobody, or with several | 401 and the realm |
//! | with a user's | goes on; the access log, and the backend if it is wanted, get the user's name |
//! | while too many wait to be checked, of all clients or of this one | 503 |
//!
//! A check takes a tenth of a second of a processor by design. So it runs on a thread that may block, for as many at a time as half of
//! the processors, and what was right is remembered by a keyed hash ([`Users`]), which cannot be guessed or turned back. An
//! unknown user is checked against another's hash: the time tells nobody which users there are.

pub mod users;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use shortline_base::world::run_blocking;
use tokio::sync::Semaphore;

use super::fields::remove_alike;
use crate::files::Plan;
use users::Users;

/// Checks that run or wait: of all clients, and of one.
const CHECKS_MAX: usize = 64;
const CHECKS_OF_CLIENT_MAX: usize = 8;
/// The longest credentials that are looked at.
const CREDENTIALS_BYTES_MAX: usize = 1024;

/// Checks at a time, of all sites.
static PROCESSORS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors / 2).max(1))
});
/// How many checks of each client run or wait.
static CHECKS: LazyLock<Mutex<HashMap<IpAddr, usize>>> = LazyLock::new(Mutex::default);

/// Who may ask, and what is said of it.
#[derive(Clone, Debug)]
pub struct Auth {
    /// The file with the users.
    file: PathBuf,
    challenge: HeaderValue,
    /// The field in which the backend gets the user's name.
    user_field: Option<HeaderName>,
    /// Nobody, until the file is read.
    users: Arc<Users>,
}

/// What becomes of a request.
pub enum Access {
    /// It goes on.
    Granted,
    /// It does not.
    Refused(Box<Plan>),
    /// Its credentials must be checked first.
    Unchecked,
}

impl PartialEq for Auth {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
            && self.challenge == other.challenge
            && self.user_field == other.user_field
    }
}

impl Auth {
    /// The users of a file that is not read yet. The realm is a text without quotes and backslashes. `None`: it is not.
    pub fn new(file: PathBuf, realm: &str, user_field: Option<HeaderName>) -> Option<Self> {
        let is_plain =
            |letter: char| (' '..='~').contains(&letter) && !['"', '\\'].contains(&letter);
        if !realm.chars().all(is_plain) {
            return None;
        }
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Some(Self {
            file,
            challenge: HeaderValue::try_from(challenge).ok()?,
            user_field,
            users: Arc::default(),
        })
    }

    /// The file with the users.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Takes what the file says.
    pub fn set_users(&mut self, users: Arc<Users>) {
        self.users = users;
    }

    /// Decides about a request as far as that takes no time.
    pub fn ask_now(&self, method: &Method, headers: &HeaderMap) -> Access {
        let Some(credentials) = credentials(headers) else {
            return Access::Refused(self.refusal(method));
        };
        match self.users.known(&credentials) {
            Some(_) => Access::Granted,
            None => Access::Unchecked,
        }
    }

    /// Decides about a request of a client.
    ///
    /// # Errors
    /// The answer.
    pub async fn ask(
        &self,
        client: IpAddr,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Arc<str>, Box<Plan>> {
        let refused = || self.refusal(method);
        let credentials = credentials(headers).ok_or_else(refused)?;
        if let Some(user) = self.users.known(&credentials) {
            return Ok(user);
        }
        let Some(_check) = Check::begin(client) else {
            return Err(busy(method));
        };
        // It is never closed.
        let place = PROCESSORS.acquire().await.map_err(|_| busy(method))?;
        let users = Arc::clone(&self.users);
        let checked = run_blocking(move || {
            let user = users.check(&credentials);
            drop(place);
            user
        });
        checked.await.ok().flatten().ok_or_else(refused)
    }

    /// Gives the backend the user's name, and nobody else's: another spelling of the field may be the same to it.
    pub fn tell(&self, user: &str, headers: &mut HeaderMap) {
        let Some(field) = &self.user_field else {
            return;
        };
        remove_alike(headers, field);
        // A name that is no value of a field is refused when the file is read.
        if let Ok(user) = HeaderValue::from_str(user) {
            headers.insert(field, user);
        }
    }

    /// The field in which the backend gets the user's name.
    pub fn user_field(&self) -> Option<&HeaderName> {
        self.user_field.as_ref()
    }

    fn refusal(&self, method: &Method) -> Box<Plan> {
        let mut plan = Plan::text(StatusCode::UNAUTHORIZED, method);
        plan.headers
            .change()
            .insert(WWW_AUTHENTICATE, self.challenge.clone());
        plan.into()
    }
}

fn busy(method: &Method) -> Box<Plan> {
    let mut plan = Plan::text(StatusCode::SERVICE_UNAVAILABLE, method);
    plan.headers.change().insert(RETRY_AFTER, 1.into());
    plan.into()
}

/// `user:password` of a request. `None`: it has none, or several, or something else.
pub fn credentials(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let (scheme, rest) = value.as_bytes().split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") || rest.len() > CREDENTIALS_BYTES_MAX {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    decoded.contains(&b':').then_some(decoded)
}

/// A check that runs or waits.
struct Check(IpAddr);

impl Check {
    fn begin(client: IpAddr) -> Option<Self> {
        let mut checks = CHECKS.lock();
        let all: usize = checks.values().sum();
        let own = checks.get(&client).copied().unwrap_or(0);
        if all >= CHECKS_MAX || own >= CHECKS_OF_CLIENT_MAX {
            return None;
        }
        checks.insert(client, own + 1);
        Some(Self(client))
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let mut checks = CHECKS.lock();
        match checks.get_mut(&self.0) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(checks.remove(&self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn credentials_are_those_of_basic_and_of_one_field() {
        let read = |values: &[&str]| credentials(&headers(values));
        assert_eq!(read(&["Basic YTpi"]).unwrap(), b"a:b");
        assert_eq!(read(&["BASIC  YTpi"]).unwrap(), b"a:b");
        for other in [
            "Bearer YTpi",
            "Basic",
            "Basic YQ==",
            "Basic !",
            "basicYTpi",
            "",
        ] {
            assert_eq!(read(&[other]), None, "{other}");
        }
        assert_eq!(read(&["Basic YTpi", "Basic YTpi"]), None);
        let long = format!("Basic {}", "YTpi".repeat(1000));
        assert_eq!(read(&[&long]), None);
    }

    #[test]
    fn one_client_does_not_take_all_checks() {
        let client = |last: u8| IpAddr::from([192, 0, 2, last]);
        let own: Vec<Check> = (0..CHECKS_OF_CLIENT_MAX)
            .filter_map(|_| Check::begin(client(1)))
            .collect();
        assert_eq!(own.len(), CHECKS_OF_CLIENT_MAX);
        assert!(Check::begin(client(1)).is_none());
        assert!(Check::begin(client(2)).is_some());
        drop(own);
        assert!(Check::begin(client(1)).is_some());
    }

    #[test]
    fn the_backend_gets_the_name_and_no_other_spelling_of_it() {
        let field = HeaderName::from_static("x-remote-user");
        let auth = Auth::new("users".into(), "office", Some(field)).unwrap();
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x_remote_user", "x-remote_user", "x-other"] {
            headers.insert(HeaderName::from_static(name), "admin".parse().unwrap());
        }
        auth.tell("bob", &mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["x-remote-user"], "bob");
        assert!(Auth::new("users".into(), "a\"b", None).is_none());
    }

    #[tokio::test]
    async fn before_its_file_is_read_nobody_may_ask() {
        let auth = Auth::new("users".into(), "office", None).unwrap();
        let asked = headers(&["Basic YTpi"]);
        assert!(matches!(
            auth.ask_now(&Method::GET, &asked),
            Access::Unchecked
        ));
        let refused = auth.ask(IpAddr::from([192, 0, 2, 9]), &Method::GET, &asked);
        let plan = refused.await.unwrap_err();
        assert_eq!(plan.status, 401);
        assert_eq!(
            plan.headers[WWW_AUTHENTICATE],
            "Basic realm=\"office\", charset=\"UTF-8\""
        );
    }
}
