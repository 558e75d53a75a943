//! `[acme]`: where certificates by themselves come from.

pub mod keys;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use shortline_acme::{
    ChallengeKind, Config, DIRECTORY, DIRECTORY_STAGING, ExternalAccount, OnDemand,
};
use shortline_daemon::file::{Place, Source};
use shortline_daemon::keys::Overlay;
use shortline_tls::Trust;

use keys::AcmeKeys;

/// Where systemd says that state belongs (systemd.exec(5), StateDirectory=).
const STATE_VARIABLE: &str = "STATE_DIRECTORY";
/// Where it belongs otherwise.
const STATE: &str = "/var/lib/shortline";

/// What flags and file say together.
///
/// # Errors
/// A contradiction.
pub fn resolve(flags: &AcmeKeys, in_file: AcmeKeys, source: &Source) -> Result<Config, String> {
    let keys = flags.clone().over(in_file);
    let place = Place {
        source,
        table: "acme",
    };
    let staging = keys.staging == Some(true);
    if staging && keys.directory.is_some() {
        let at = place.of(flags.staging.is_some(), "acme-staging", "staging");
        return Err(format!(
            "{at}: is Let's Encrypt's: leave it or the directory out"
        ));
    }
    let external_account = external_account(flags, &keys, &place)?;
    let known = if staging {
        DIRECTORY_STAGING
    } else {
        DIRECTORY
    };
    let challenges = keys
        .challenges
        .unwrap_or_else(|| vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01]);
    if challenges.is_empty() {
        let at = place.of(flags.challenges.is_some(), "acme-challenge", "challenges");
        return Err(format!("{at}: is empty: name tls-alpn-01, http-01 or both"));
    }
    let bounds = OnDemand::default();
    Ok(Config {
        directory: keys
            .directory
            .map_or(known.to_owned(), |directory| directory.0),
        contact: keys
            .contact
            .unwrap_or_default()
            .into_iter()
            .map(|mail| mail.0)
            .collect(),
        external_account,
        state: keys.state.unwrap_or_else(state_folder),
        trust: keys.ca.map_or(Trust::System, Trust::File),
        key_kind: keys.key_type.unwrap_or_default(),
        challenges,
        profile: keys.profile,
        revoke_replaced: keys.revoke_replaced.unwrap_or(false),
        on_demand: OnDemand {
            ask: keys.ask.map(|ask| ask.0),
            names_max: keys
                .on_demand_names_max
                .map_or(bounds.names_max, NonZeroUsize::get),
            orders_per_minute_max: keys
                .on_demand_orders_max
                .map_or(bounds.orders_per_minute_max, NonZeroUsize::get),
        },
    })
}

/// What the authority has given to somebody it knows.
fn external_account(
    flags: &AcmeKeys,
    keys: &AcmeKeys,
    place: &Place<'_>,
) -> Result<Option<ExternalAccount>, String> {
    let of_kid = || place.of(flags.eab_kid.is_some(), "acme-eab-kid", "eab-kid");
    let of_file = || {
        let by_flag = flags.eab_key_file.is_some();
        place.of(by_flag, "acme-eab-key-file", "eab-key-file")
    };
    match (&keys.eab_kid, &keys.eab_key_file) {
        (None, None) => Ok(None),
        (Some(kid), Some(file)) => ExternalAccount::read(kid.clone(), file)
            .map(Some)
            .map_err(|problem| format!("{}: {problem}", of_file())),
        (Some(_), None) => Err(format!(
            "{}: belongs together with eab-key-file: give both or neither",
            of_kid()
        )),
        (None, Some(_)) => Err(format!(
            "{}: belongs together with eab-kid: give both or neither",
            of_file()
        )),
    }
}

/// systemd may name several folders, separated by colons.
fn state_folder() -> PathBuf {
    let named = std::env::var(STATE_VARIABLE).unwrap_or_default();
    let first = named.split(':').next().filter(|first| !first.is_empty());
    Path::new(first.unwrap_or(STATE)).join("acme")
}
