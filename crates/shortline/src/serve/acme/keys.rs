//! The keys of `[acme]`, and their flags.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use shortline_acme::{ChallengeKind, KeyKind};
use shortline_daemon::keys::{all_from_text, some_from_text};
use shortline_daemon::overlay;

/// `[acme]`: where certificates by themselves come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[command(next_help_heading = "Certificates by themselves")]
pub struct AcmeKeys {
    /// The directory of the authority that is asked for certificates, an https URL [default: Let's Encrypt's]
    #[arg(id = "acme_directory", long = "acme-directory", value_name = "URL")]
    #[serde(deserialize_with = "some_from_text")]
    pub directory: Option<DirectoryUrl>,
    /// Ask Let's Encrypt's authority for tests [default: false]
    ///
    /// Its limits are wider, and no client trusts its certificates.
    #[arg(
        id = "acme_staging",
        long = "acme-staging",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub staging: Option<bool>,
    /// A mail address for the authority to write to; may be given again
    ///
    /// Let's Encrypt no longer writes to anybody. Others may need one.
    #[arg(id = "acme_contact", long = "acme-contact", value_name = "MAIL")]
    #[serde(deserialize_with = "all_from_text")]
    pub contact: Option<Vec<MailAddress>>,
    /// What the authority calls the key of the account that you have there (external account binding)
    ///
    /// ZeroSSL, Google Trust Services and many CAs of companies need it, once, when the first certificate is ordered.
    #[arg(id = "acme_eab_kid", long = "acme-eab-kid", value_name = "ID")]
    pub eab_kid: Option<String>,
    /// File with that key, in base64url as the authority shows it
    #[arg(
        id = "acme_eab_key_file",
        long = "acme-eab-key-file",
        value_name = "FILE"
    )]
    pub eab_key_file: Option<PathBuf>,
    /// The folder that keys and certificates are kept in [default: acme in systemd's StateDirectory, else
    /// /var/lib/shortline/acme]
    ///
    /// Several processes may share it: one orders, and the others take what it gets.
    #[arg(id = "acme_state", long = "acme-state", value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// PEM file with the authorities that the directory's own certificate may be from [default: the system's]
    #[arg(id = "acme_ca", long = "acme-ca", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// What keys are made for certificates: p256 or p384 (ECDSA) [default: p256]
    #[arg(id = "acme_key_type", long = "acme-key-type", value_name = "TYPE")]
    #[serde(deserialize_with = "some_from_text")]
    pub key_type: Option<KeyKind>,
    /// How the authority may check a name: tls-alpn-01 (it looks at port 443) or http-01 (at port 80); may be given again
    /// [default: both]
    ///
    /// The first is tried first, and after a failure the next.
    #[arg(id = "acme_challenges", long = "acme-challenge", value_name = "KIND")]
    #[serde(deserialize_with = "all_from_text")]
    pub challenges: Option<Vec<ChallengeKind>>,
    /// The profile of the certificates, if the authority has several
    ///
    /// Let's Encrypt has classic, tlsserver and shortlived.
    #[arg(id = "acme_profile", long = "acme-profile", value_name = "NAME")]
    pub profile: Option<String>,
    /// Revoke a certificate when another has taken its place [default: false]
    ///
    /// Processes that share the folder take the new one within a minute.
    #[arg(
        id = "acme_revoke_replaced",
        long = "acme-revoke-replaced",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    pub revoke_replaced: Option<bool>,
    /// Ask this http or https URL whether a name may have a certificate on demand: `?domain=NAME` is put behind it, and
    /// the answer 200 allows it
    #[arg(id = "acme_ask", long = "acme-ask", value_name = "URL")]
    #[serde(deserialize_with = "some_from_text")]
    pub ask: Option<AskUrl>,
    /// The most names with a certificate on demand [default: 1000]
    #[arg(
        id = "acme_on_demand_names_max",
        long = "acme-on-demand-names-max",
        value_name = "N"
    )]
    pub on_demand_names_max: Option<NonZeroUsize>,
    /// The most orders on demand in a minute [default: 10]
    #[arg(
        id = "acme_on_demand_orders_max",
        long = "acme-on-demand-orders-max",
        value_name = "N"
    )]
    pub on_demand_orders_max: Option<NonZeroUsize>,
}

overlay!(AcmeKeys {
    directory,
    staging,
    contact,
    eab_kid,
    eab_key_file,
    state,
    ca,
    key_type,
    challenges,
    profile,
    revoke_replaced,
    ask,
    on_demand_names_max,
    on_demand_orders_max,
});

/// The URL of who knows the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskUrl(pub String);

/// A text that is no such URL.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no URL to ask: write it like http://127.0.0.1:9000/allowed")]
pub struct AskUrlError(String);

impl FromStr for AskUrl {
    type Err = AskUrlError;

    fn from_str(text: &str) -> Result<Self, AskUrlError> {
        match is_url(text, &["http", "https"]) && !text.contains('#') {
            true => Ok(Self(text.to_owned())),
            false => Err(AskUrlError(text.escape_debug().to_string())),
        }
    }
}

/// Whether it is a URL of one of these schemes with a host.
fn is_url(text: &str, schemes: &[&str]) -> bool {
    let url = text.parse::<http::Uri>().ok();
    url.is_some_and(|url| {
        let has_scheme = url
            .scheme_str()
            .is_some_and(|scheme| schemes.contains(&scheme));
        has_scheme && url.host().is_some_and(|host| !host.is_empty())
    })
}

/// The URL of an authority's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUrl(pub String);

/// A text that is no such URL.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no directory of an authority: write its https URL, such as https://acme-v02.api.letsencrypt.org/directory"
)]
pub struct DirectoryUrlError(String);

impl FromStr for DirectoryUrl {
    type Err = DirectoryUrlError;

    fn from_str(text: &str) -> Result<Self, DirectoryUrlError> {
        // RFC 8555, 6.1 wants HTTPS.
        match is_url(text, &["https"]) {
            true => Ok(Self(text.to_owned())),
            false => Err(DirectoryUrlError(text.escape_debug().to_string())),
        }
    }
}

/// A mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailAddress(pub String);

/// A text that is no mail address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no mail address: write it like admin@example.org")]
pub struct MailAddressError(String);

impl FromStr for MailAddress {
    type Err = MailAddressError;

    fn from_str(text: &str) -> Result<Self, MailAddressError> {
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        // RFC 8555, 7.3: one address, and no header fields. Whether it exists is for the authority to find out.
        let is_letter = |byte: u8| byte.is_ascii_graphic() && !b"?,<>".contains(&byte);
        let has_two_sides = address.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.contains('@')
        });
        match has_two_sides && address.bytes().all(is_letter) {
            true => Ok(Self(address.to_owned())),
            false => Err(MailAddressError(text.escape_debug().to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_an_https_url() {
        for text in [
            "https://ca.example/dir",
            "https://[::1]:14000/dir",
            "https://a",
        ] {
            assert!(text.parse::<DirectoryUrl>().is_ok(), "{text}");
        }
        for text in [
            "",
            "letsencrypt",
            "http://ca.example/dir",
            "https://",
            "ca.example/dir",
            "https:///a",
        ] {
            assert!(text.parse::<DirectoryUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn who_knows_the_names_is_asked_by_http_or_https() {
        for text in [
            "http://127.0.0.1:9000/allowed",
            "https://a/?b=c",
            "http://[::1]/",
        ] {
            assert!(text.parse::<AskUrl>().is_ok(), "{text}");
        }
        for text in [
            "",
            "127.0.0.1:9000",
            "unix:/run/a",
            "http://",
            "http://a/#b",
        ] {
            assert!(text.parse::<AskUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_contact_is_one_mail_address() {
        for text in ["a@b", "mailto:a.b+c@example.org"] {
            assert!(text.parse::<MailAddress>().is_ok(), "{text}");
        }
        for text in [
            "", "a", "@b", "a@", "a@b,c@d", "a@b?x=y", "a b@c", "a@b@c", "tel:+1@",
        ] {
            assert!(text.parse::<MailAddress>().is_err(), "{text}");
        }
    }
}
