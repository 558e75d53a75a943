//! An authority as it is used: one account, orders, and its advice on when to renew (RFC 9773).
//!
//! The account is made at the first order and kept in the folder of the state. Its terms are agreed to, as whoever asks for
//! certificates by themselves must (RFC 8555, 7.3.3).

use std::sync::Arc;

use instant_acme::{
    Account, CertificateIdentifier, Error, NewAccount, Problem, RevocationReason, RevocationRequest,
};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use shortline_tls::names::Pattern;
use tokio::sync::Mutex;

use crate::challenges::Challenges;
use crate::client::Client;
use crate::config::Config;
use crate::external::ExternalAccount;
use crate::leaf::{self, Leaf};
use crate::order::{self, Wanted};
use crate::schedule::Window;
use crate::store::Store;

/// What an authority says may be long, and may have line breaks.
const REASON_CHARS_MAX: usize = 400;
/// An order is begun so often if nonces are refused again and again, as an authority with several machines may do.
const NONCE_ATTEMPTS: u32 = 4;
/// After a refusal for too many requests (RFC 8555, 6.6), if it does not say how long.
const LIMITED_S: u64 = 3600;

/// Why there is no certificate.
#[derive(Debug)]
pub struct Failure {
    /// In one line.
    pub reason: String,
    /// Whether other names would fail, too.
    pub is_authoritys: bool,
    /// How long the authority wants us to wait, in seconds.
    pub told_s: Option<u64>,
    /// The authority does not know our account.
    is_accounts: bool,
    /// It has refused a number that it had given (RFC 8555, 6.5). Another attempt is due at once.
    is_nonces: bool,
}

/// An authority, and our account there.
pub struct Authority {
    config: Config,
    store: Store,
    client: Client,
    account: Mutex<Option<Account>>,
}

/// A certificate that was ordered.
#[derive(Debug)]
pub struct Got {
    /// Key and chain.
    pub key: CertifiedKey,
    /// What it says of itself.
    pub leaf: Leaf,
}

/// What the authority advises.
#[derive(Debug, Default)]
pub struct Advice {
    /// When to renew.
    pub window: Option<Window>,
    /// When to ask again, in seconds from now.
    pub again_s: Option<u64>,
}

impl Authority {
    /// An authority that was not asked for anything yet.
    pub fn new(config: Config, store: Store, client: Client) -> Self {
        Self {
            config,
            store,
            client,
            account: Mutex::default(),
        }
    }

    /// Orders a certificate and keeps it. `attempt` counts from 0: challenges are tried in turn.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn order(
        &self,
        challenges: &Arc<Challenges>,
        name: &Pattern,
        attempt: u32,
        replaces: Option<CertificateIdentifier<'static>>,
    ) -> Result<Got, Failure> {
        let kinds = &self.config.challenges;
        let text = name.to_string();
        let wanted = Wanted {
            name: &text,
            challenge: kinds[attempt as usize % kinds.len()],
            replaces,
        };
        let mut left = NONCE_ATTEMPTS;
        let pem = loop {
            let ordered = match self.account().await {
                Ok(account) => {
                    order::certificate(&account, &self.config, challenges, &wanted).await
                }
                Err(failure) => Err(failure),
            };
            left -= 1;
            match ordered {
                Ok(pem) => break pem,
                Err(failure) if failure.is_nonces && left > 0 => {}
                Err(failure) => return Err(self.noted(failure).await),
            }
        };
        self.keep(name, &pem).map_err(|problem| {
            Failure::of_authority(format!(
                "what the authority has made cannot be used: {problem}"
            ))
        })
    }

    /// Nothing is kept that would not be served.
    fn keep(&self, name: &Pattern, pem: &str) -> Result<Got, String> {
        let check = |key: &CertifiedKey| {
            shortline_tls::check_names(key, std::slice::from_ref(name))?;
            let leaf = leaf::read(&key.cert[0])?;
            match leaf.validity.until_s > now_s() {
                true => Ok(leaf),
                false => Err("is no longer valid".to_owned()),
            }
        };
        let (key, leaf) = self.store.keep(&name.to_string(), pem, check)?;
        Ok(Got { key, leaf })
    }

    /// Asks when to renew a certificate. An authority that does not know is no failure.
    pub async fn advice(&self, certificate: &CertificateIdentifier<'_>) -> Advice {
        let Ok(account) = self.account().await else {
            return Advice::default();
        };
        let asked = tokio::time::timeout(order::TIME_MAX, account.renewal_info(certificate)).await;
        let Ok(Ok((told, again))) = asked else {
            return Advice::default();
        };
        let seconds = |at: i64| u64::try_from(at).unwrap_or(0);
        let window = told.suggested_window;
        Advice {
            window: Some(Window {
                from_s: seconds(window.start.unix_timestamp()),
                until_s: seconds(window.end.unix_timestamp()),
            }),
            again_s: Some(again.as_secs()),
        }
    }

    /// Revokes a certificate that another has taken the place of.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn revoke(&self, certificate: &CertificateDer<'_>) -> Result<(), Failure> {
        let request = RevocationRequest {
            certificate,
            reason: Some(RevocationReason::Superseded),
        };
        let account = self.account().await?;
        let revoked = tokio::time::timeout(order::TIME_MAX, account.revoke(&request)).await;
        revoked.map_err(|_| Failure::of_name("no answer".to_owned()))??;
        Ok(())
    }

    /// The account: the one in use, the one that is kept, or a new one.
    async fn account(&self) -> Result<Account, Failure> {
        let mut account = self.account.lock().await;
        if let Some(account) = &*account {
            return Ok(account.clone());
        }
        let opened = tokio::time::timeout(order::TIME_MAX, self.open_account()).await;
        let opened = opened.map_err(|_| Failure::of_authority("no account in time".to_owned()))?;
        let opened = opened.map_err(|error| self.of_account(error))?;
        *account = Some(opened.clone());
        Ok(opened)
    }

    async fn open_account(&self) -> Result<Account, Error> {
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        if let Some(kept) = self.store.account() {
            return builder.from_credentials(kept).await;
        }
        let contact: Vec<String> = self
            .config
            .contact
            .iter()
            .map(|mail| format!("mailto:{mail}"))
            .collect();
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let wanted = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.config.directory.clone();
        let external = self.config.external_account.as_ref();
        let external = external.map(ExternalAccount::key);
        let (account, made) = builder
            .create(&wanted, directory, external.as_ref())
            .await?;
        self.store.keep_account(&made);
        Ok(account)
    }

    /// Without an account nobody gets a certificate.
    fn of_account(&self, error: Error) -> Failure {
        let failure = Failure::from(error);
        Failure {
            is_authoritys: true,
            told_s: failure.told_s.or(self.client.told_s()),
            ..failure
        }
    }

    /// Lets go of what does not work: the account that is not known, the directory that was read long ago.
    async fn noted(&self, failure: Failure) -> Failure {
        if failure.is_accounts {
            self.store.forget_account();
        }
        if failure.is_accounts || failure.is_authoritys {
            *self.account.lock().await = None;
        }
        Failure {
            told_s: failure.told_s.max(self.client.told_s()),
            ..failure
        }
    }
}

impl Failure {
    /// Something about one name.
    pub fn of_name(reason: String) -> Self {
        Self {
            reason: one_line(&reason),
            is_authoritys: false,
            told_s: None,
            is_accounts: false,
            is_nonces: false,
        }
    }

    /// Something that concerns all names.
    pub fn of_authority(reason: String) -> Self {
        Self {
            is_authoritys: true,
            ..Self::of_name(reason)
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => of_problem(&problem),
            Error::Json(error) => Self::of_authority(format!(
                "the authority does not answer as ACME servers do ({error})"
            )),
            Error::Timeout(_) => Self::of_name("the authority has not finished in time".to_owned()),
            Error::Other(error) => Self::of_authority(error.to_string()),
            error => Self::of_authority(error.to_string()),
        }
    }
}

/// What the authority says in its own words (RFC 8555, 6.7).
fn of_problem(problem: &Problem) -> Failure {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    let kind = kind.rsplit(':').next().unwrap_or_default();
    let detail = problem
        .detail
        .as_deref()
        .unwrap_or("refused without a reason");
    let further = problem
        .subproblems
        .iter()
        .map(|further| format!("; {further}"));
    let hint = match kind {
        "externalAccountRequired" => "; give eab-kid and eab-key-file in [acme]",
        _ => "",
    };
    let reason = format!("{kind}: {detail}{}{hint}", further.collect::<String>());
    Failure {
        told_s: (kind == "rateLimited").then_some(LIMITED_S),
        is_accounts: kind == "accountDoesNotExist",
        is_nonces: kind == "badNonce",
        ..Failure::of_name(reason)
    }
}

/// The text of another in one line, and not all of it if there is much.
fn one_line(text: &str) -> String {
    let line: String = text
        .chars()
        .take(REASON_CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    line.replace("\\\"", "\"").replace("\\'", "'")
}

/// Now, in seconds since 1970.
pub fn now_s() -> u64 {
    let since = shortline_base::clock::date().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_an_authority_says_is_told_in_one_line() {
        let problem = |text: &str| Failure::from(Error::Api(serde_json::from_str(text).unwrap()));
        let told = problem(
            r#"{"type":"urn:ietf:params:acme:error:connection","detail":"1.2.3.4: \"no\"\nroute",
                "subproblems":[{"type":"x","detail":"y","identifier":{"type":"dns","value":"a.example"}}]}"#,
        );
        assert_eq!(
            told.reason,
            "connection: 1.2.3.4: \"no\"\\nroute; for \"a.example\": y (x)"
        );
        assert!(!told.is_authoritys && told.told_s.is_none());
        let limited = problem(r#"{"type":"urn:ietf:params:acme:error:rateLimited"}"#);
        assert_eq!(limited.told_s, Some(LIMITED_S));
        assert!(
            problem(r#"{"type":"urn:ietf:params:acme:error:accountDoesNotExist"}"#).is_accounts
        );
        let long = problem(&format!(r#"{{"detail":"{}"}}"#, "\\u0007".repeat(9000)));
        assert!(long.reason.len() < 4000 && !long.reason.contains('\u{7}'));
    }
}
