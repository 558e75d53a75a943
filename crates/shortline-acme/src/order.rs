//! One order, from its beginning to a certificate (RFC 8555, 7.4):
//!
//! 1. The order names what is wanted, and which certificate it replaces (RFC 9773, 5).
//! 2. Each name must be authorized. What the authority will look for is posted, and it is told to look.
//! 3. The order is ready, or is not and says why.
//! 4. It gets a request with a new key, and is asked until there is a certificate.
//!
//! All of it must be over in [`TIME_MAX`]. Nothing is believed: the certificate must be for the name and the key, and be valid.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeType,
    Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use crate::authority::Failure;
use crate::challenges::{Challenges, Posted};
use crate::config::{ChallengeKind, Config, KeyKind};

/// For a whole order. Let's Encrypt needs some seconds.
pub const TIME_MAX: Duration = Duration::from_secs(300);
/// For the authority to look, and to make the certificate: each.
const STEP_TIME_MAX: Duration = Duration::from_secs(120);
/// An authorization for each name of an order, of which there is one.
const AUTHORIZATIONS_MAX: usize = 1;

/// What is ordered.
pub struct Wanted<'a> {
    /// The name.
    pub name: &'a str,
    /// How it is to be checked.
    pub challenge: ChallengeKind,
    /// The certificate that it takes the place of.
    pub replaces: Option<CertificateIdentifier<'static>>,
}

/// Orders a certificate. Returns its key and chain in PEM.
///
/// # Errors
/// [`Failure`]
pub async fn certificate(
    account: &Account,
    config: &Config,
    challenges: &Arc<Challenges>,
    wanted: &Wanted<'_>,
) -> Result<String, Failure> {
    let ordering = ordered(account, config, challenges, wanted);
    let ordered = tokio::time::timeout(TIME_MAX, ordering).await;
    ordered.unwrap_or_else(|_| {
        let waited = format!("there is no certificate after {} s", TIME_MAX.as_secs());
        Err(Failure::of_name(waited))
    })
}

async fn ordered(
    account: &Account,
    config: &Config,
    challenges: &Arc<Challenges>,
    wanted: &Wanted<'_>,
) -> Result<String, Failure> {
    let mut order = begun(account, config, wanted).await?;
    let retries = RetryPolicy::new()
        .initial_delay(Duration::from_millis(500))
        .backoff(1.5)
        .timeout(STEP_TIME_MAX);
    if order.state().status == OrderStatus::Pending {
        let posted = authorized(&mut order, challenges, wanted).await?;
        let status = order.poll_ready(&retries).await;
        drop(posted);
        if !matches!(status, Ok(OrderStatus::Ready)) {
            return Err(reason(&mut order, status.err()).await);
        }
    }
    let algorithm = match config.key_kind {
        KeyKind::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        KeyKind::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
    };
    let key = KeyPair::generate_for(algorithm).map_err(own)?;
    let mut params = CertificateParams::new(vec![wanted.name.to_owned()]).map_err(own)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(own)?;
    order.finalize_csr(request.der()).await?;
    let chain = order.poll_certificate(&retries).await?;
    Ok(key.serialize_pem() + &chain)
}

/// A new order. Without the hint at what it replaces if the authority does not like that.
async fn begun(account: &Account, config: &Config, wanted: &Wanted<'_>) -> Result<Order, Failure> {
    let names = [Identifier::Dns(wanted.name.to_owned())];
    let plain = || {
        let order = NewOrder::new(&names);
        match &config.profile {
            Some(profile) => order.profile(profile),
            None => order,
        }
    };
    if let Some(replaces) = &wanted.replaces
        && let Ok(order) = account.new_order(&plain().replaces(replaces.clone())).await
    {
        return Ok(order);
    }
    Ok(account.new_order(&plain()).await?)
}

/// Posts what the authority will look for, and tells it to look. What is returned must be held until it has.
async fn authorized(
    order: &mut Order,
    challenges: &Arc<Challenges>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Posted>, Failure> {
    let mut posted = Vec::new();
    if order.state().authorizations.len() > AUTHORIZATIONS_MAX {
        let many = order.state().authorizations.len();
        return Err(Failure::of_authority(format!(
            "the order for one name has {many} authorizations"
        )));
    }
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            status => {
                let status = format!("{status:?}").to_lowercase();
                return Err(Failure::of_name(format!("its authorization is {status}")));
            }
        }
        posted.push(begin_check(&mut authorization, challenges, wanted).await?);
    }
    Ok(posted)
}

async fn begin_check<'a>(
    authorization: &'a mut AuthorizationHandle<'a>,
    challenges: &Arc<Challenges>,
    wanted: &Wanted<'_>,
) -> Result<Posted, Failure> {
    let named = authorization.identifier().to_string();
    if !named.eq_ignore_ascii_case(wanted.name) {
        return Err(Failure::of_authority(format!(
            "an authorization is for {named}"
        )));
    }
    let kind = match wanted.challenge {
        ChallengeKind::Http01 => ChallengeType::Http01,
        ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
    };
    let Some(mut challenge) = authorization.challenge(kind) else {
        return Err(Failure::of_name(format!(
            "the authority offers no {}",
            wanted.challenge
        )));
    };
    let text = challenge.key_authorization();
    let posted = match wanted.challenge {
        ChallengeKind::Http01 => challenges.post_text(&challenge.token, text.as_str()),
        ChallengeKind::TlsAlpn01 => {
            challenges.post_certificate(wanted.name, text.digest().as_ref())
        }
    };
    let posted = posted.map_err(|error| Failure::of_authority(error.to_string()))?;
    challenge.set_ready().await?;
    Ok(posted)
}

/// Why the order did not become ready, as its authorization has it.
async fn reason(order: &mut Order, error: Option<instant_acme::Error>) -> Failure {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else {
            break;
        };
        let mut failed = state.challenges.iter();
        if let Some(error) = failed.find_map(|challenge| challenge.error.clone()) {
            return instant_acme::Error::Api(error).into();
        }
    }
    match error {
        Some(error) => error.into(),
        None => Failure::of_name("the authority does not say why".to_owned()),
    }
}

fn own(error: rcgen::Error) -> Failure {
    Failure::of_name(format!("no request for a certificate: {error}"))
}
