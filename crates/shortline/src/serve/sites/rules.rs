//! `[[site.rule]]`: rules as the file has them.

pub mod forward_auth;
pub mod guards;
mod values;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING};
use serde::Deserialize;
use shortline_daemon::file::spot::KeyError;
use shortline_daemon::keys::{all_from_text, any_number, some_from_text};
use shortline_sched::Network;
use shortline_sched::units::{Rate, Size};
use shortline_tls::names::Pattern;
use shortline_web::compress::{Compress, is_no_transform};
use shortline_web::pace::Bandwidth;
use shortline_web::rules::pages::Pages;
use shortline_web::rules::{Changes, PathChange, Reply, Rule, When};

use forward_auth::ForwardAuthKeys;
use guards::{AuthKeys, CorsKeys, PageKeys, RateBy, RateKeys, RateText};
use values::{Field, Location, MethodName, Prefix, RulePath, TargetTemplate, Value, WantedField};

/// The longest text that a rule answers with.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A rule as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleKeys {
    #[serde(deserialize_with = "some_from_text")]
    path: Option<RulePath>,
    #[serde(deserialize_with = "all_from_text")]
    method: Option<Vec<MethodName>>,
    #[serde(deserialize_with = "some_from_text")]
    header: Option<WantedField>,
    #[serde(deserialize_with = "all_from_text")]
    host: Option<Vec<Pattern>>,
    #[serde(deserialize_with = "all_from_text")]
    allow: Option<Vec<Network>>,
    #[serde(deserialize_with = "all_from_text")]
    deny: Option<Vec<Network>>,
    #[serde(deserialize_with = "some_from_text")]
    redirect: Option<Location>,
    respond: Option<String>,
    status: Option<u16>,
    #[serde(deserialize_with = "some_from_text")]
    rewrite: Option<TargetTemplate>,
    #[serde(deserialize_with = "some_from_text")]
    strip_prefix: Option<Prefix>,
    #[serde(deserialize_with = "all_from_text")]
    try_files: Option<Vec<TargetTemplate>>,
    #[serde(deserialize_with = "some_from_text")]
    cache_control: Option<Value>,
    compress: Option<bool>,
    error_page: Option<PageKeys>,
    basic_auth: Option<AuthKeys>,
    forward_auth: Option<ForwardAuthKeys>,
    cors: Option<CorsKeys>,
    #[serde(deserialize_with = "some_from_text")]
    rate: Option<RateText>,
    rate_burst: Option<NonZeroU32>,
    #[serde(deserialize_with = "some_from_text")]
    rate_by: Option<RateBy>,
    bandwidth_max: Option<Rate>,
    bandwidth_after: Option<Size>,
    headers: ChangeKeys,
    request_headers: ChangeKeys,
}

/// Changes of fields as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct ChangeKeys {
    set: BTreeMap<Field, Value>,
    add: BTreeMap<Field, Value>,
    #[serde(deserialize_with = "any_number")]
    remove: Vec<Field>,
}

impl RuleKeys {
    /// The rule, of a site with these names (none: all that no other has) and with files, routes, or both.
    ///
    /// # Errors
    /// What contradicts itself, and what would be right.
    pub fn resolve(
        &self,
        site_names: &[Pattern],
        has_files: bool,
        has_routes: bool,
    ) -> Result<Rule, KeyError> {
        self.refuse_nothing()?;
        self.refuse_contradictions()?;
        self.refuse_hosts(site_names)?;
        self.refuse_idle(has_files, has_routes)?;
        let mut response = self.headers.changes();
        if let Some(value) = &self.cache_control {
            response.set.push((CACHE_CONTROL, value.0.clone()));
        }
        Ok(Rule {
            when: self.when(),
            allow: self.allow.clone().unwrap_or_default(),
            deny: self.deny.clone().unwrap_or_default(),
            cors: self.cors.as_ref().map(CorsKeys::resolve).transpose()?,
            rate: RateKeys {
                rate: self.rate.as_ref(),
                burst: self.rate_burst,
                by: self.rate_by.as_ref(),
            }
            .resolve()?,
            auth: self
                .basic_auth
                .as_ref()
                .map(AuthKeys::resolve)
                .transpose()?,
            forward_auth: self
                .forward_auth
                .as_ref()
                .map(ForwardAuthKeys::resolve)
                .transpose()?,
            pages: match &self.error_page {
                Some(keys) => guards::pages(keys, has_files)?,
                None => Pages::default(),
            },
            reply: self.reply()?,
            path: self.path_change(),
            try_files: self
                .try_files
                .iter()
                .flatten()
                .map(|target| target.0.clone())
                .collect(),
            bandwidth: self.bandwidth()?,
            compress: self.compress(&response)?,
            request: self.request_headers.changes(),
            response,
        })
    }

    fn when(&self) -> When {
        When {
            hosts: self.host.clone().unwrap_or_default(),
            path: self.path.as_ref().map(|path| path.0.clone()),
            methods: self
                .method
                .iter()
                .flatten()
                .map(|name| name.0.clone())
                .collect(),
            header: self
                .header
                .clone()
                .map(|wanted| (wanted.name, wanted.value)),
        }
    }

    fn reply(&self) -> Result<Option<Reply>, KeyError> {
        match (&self.redirect, &self.respond) {
            (Some(to), _) => {
                let code = self.status.unwrap_or(302);
                let status = StatusCode::from_u16(code).ok();
                let status =
                    status.filter(|status| [301, 302, 303, 307, 308].contains(&status.as_u16()));
                Ok(Some(Reply::Redirect {
                    to: to.0.clone(),
                    status: status.ok_or_else(|| {
                        let problem =
                            format!("{code} is no redirect: want 301, 302, 303, 307 or 308");
                        KeyError::new("status", problem)
                    })?,
                }))
            }
            (None, Some(text)) => {
                let code = self.status.unwrap_or(200);
                let status = StatusCode::from_u16(code).ok().filter(|status| {
                    code >= 200 && status.as_u16() < 600 && ![204, 205, 304].contains(&code)
                });
                if text.len() > TEXT_BYTES_MAX {
                    return Err(KeyError::new(
                        "respond",
                        "is longer than 64KiB: make it a file, and rewrite to that",
                    ));
                }
                let status = status.ok_or_else(|| {
                    let problem =
                        format!("{code} has no text: want 200 to 599, but 204, 205 and 304");
                    KeyError::new("status", problem)
                })?;
                Ok(Some(Reply::respond(status, text.clone().into())))
            }
            (None, None) => Ok(None),
        }
    }

    fn bandwidth(&self) -> Result<Option<Bandwidth>, KeyError> {
        match (self.bandwidth_max, self.bandwidth_after) {
            (Some(rate), after) => Ok(Some(Bandwidth {
                rate,
                after_bytes: after.map_or(0, Size::bytes),
            })),
            (None, Some(_)) => Err(KeyError::new(
                "bandwidth-after",
                "belongs to a limit: add it, such as bandwidth-max = \"1mbit\"",
            )),
            (None, None) => Ok(None),
        }
    }

    /// Whether responses are compressed on the fly. What the rule says of them may forbid it.
    fn compress(&self, response: &Changes) -> Result<Option<Compress>, KeyError> {
        let sets = response.set.iter().chain(&response.add);
        let forbids = sets.into_iter().any(|(name, value)| {
            *name == CONTENT_ENCODING || (*name == CACHE_CONTROL && is_no_transform(value))
        });
        match self.compress {
            Some(true) if forbids => Err(KeyError::new(
                "compress",
                "the rule sets content-encoding or cache-control: no-transform, which forbid it: leave one of them out",
            )),
            Some(true) => Ok(Some(Compress::ALL)),
            Some(false) => Ok(Some(Compress::NONE)),
            None => Ok(forbids.then_some(Compress::NONE)),
        }
    }

    fn path_change(&self) -> Option<PathChange> {
        match (&self.rewrite, &self.strip_prefix) {
            (Some(target), _) => Some(PathChange::Rewrite(target.0.clone())),
            (None, Some(prefix)) => Some(PathChange::Strip(prefix.0.clone())),
            (None, None) => None,
        }
    }

    fn refuse_nothing(&self) -> Result<(), KeyError> {
        let match_only = Self {
            path: self.path.clone(),
            method: self.method.clone(),
            header: self.header.clone(),
            host: self.host.clone(),
            ..Self::default()
        };
        match *self == match_only {
            true => Err(KeyError::new(
                "",
                "does nothing: give it redirect, respond, rewrite, strip-prefix, try-files, cache-control, compress, \
                 error-page, basic-auth, forward-auth, cors, rate, bandwidth-max, headers, request-headers, allow or deny",
            )),
            false => Ok(()),
        }
    }

    /// Refuses a host that the site does not answer for, so that the rule could never match.
    fn refuse_hosts(&self, site_names: &[Pattern]) -> Result<(), KeyError> {
        let hosts = self.host.as_deref().unwrap_or_default();
        if self.host.is_some() && hosts.is_empty() {
            return Err(KeyError::new(
                "host",
                "names none: name one, or leave it out",
            ));
        }
        let meets = |host: &Pattern| {
            let both = |name: &Pattern| name.covers(host) || host.covers(name);
            site_names.is_empty() || site_names.iter().any(both)
        };
        match hosts.iter().find(|host| !meets(host)) {
            None => Ok(()),
            Some(host) => Err(KeyError::new(
                "host",
                format!(
                    "the site does not answer for {host}: add it to the site's names, or leave it out"
                ),
            )),
        }
    }

    /// Refuses what is for files or backends of a site that has none.
    fn refuse_idle(&self, has_files: bool, has_routes: bool) -> Result<(), KeyError> {
        let by_user = self.basic_auth.as_ref().is_some_and(AuthKeys::is_told);
        let by_server = self.forward_auth.as_ref();
        let by_server = by_server.is_some_and(ForwardAuthKeys::is_told);
        let fields = self.request_headers != ChangeKeys::default();
        let for_backends = [
            (by_user, "basic-auth.user-header"),
            (by_server, "forward-auth.copy-headers"),
            (fields, "request-headers"),
        ];
        match for_backends.iter().find(|(is_given, _)| *is_given) {
            Some((_, key)) if !has_routes => Err(KeyError::new(
                *key,
                "the site has no route to a backend: leave it out",
            )),
            _ if self.try_files.is_some() && !has_files => Err(KeyError::new(
                "try-files",
                "the site has no files: give it a root",
            )),
            _ => Ok(()),
        }
    }

    fn refuse_contradictions(&self) -> Result<(), KeyError> {
        let answers = self.redirect.is_some() || self.respond.is_some();
        let goes_on = [
            (self.rewrite.is_some(), "rewrite"),
            (self.strip_prefix.is_some(), "strip-prefix"),
            (self.try_files.is_some(), "try-files"),
            (self.compress.is_some(), "compress"),
            (self.basic_auth.is_some(), "basic-auth"),
            (self.forward_auth.is_some(), "forward-auth"),
            (
                self.request_headers != ChangeKeys::default(),
                "request-headers",
            ),
        ];
        if self.redirect.is_some() && self.respond.is_some() {
            return Err(KeyError::new(
                "redirect",
                "contradicts respond: leave one of them out",
            ));
        }
        if let Some((_, key)) = goes_on.iter().find(|(is_given, _)| answers && *is_given) {
            return Err(KeyError::new(
                *key,
                "the rule answers by itself: leave it out",
            ));
        }
        if self.status.is_some() && !answers {
            return Err(KeyError::new(
                "status",
                "is for redirect and respond: leave it out",
            ));
        }
        if self.rewrite.is_some() && self.strip_prefix.is_some() {
            return Err(KeyError::new(
                "rewrite",
                "contradicts strip-prefix: leave one of them out",
            ));
        }
        let templates = [
            (self.redirect.as_ref().map(|to| &to.0), "redirect"),
            (self.rewrite.as_ref().map(|target| &target.0), "rewrite"),
        ];
        let has_wildcard = self.path.as_ref().is_some_and(|path| path.1.contains('*'));
        let mut templates = templates.into_iter();
        let needs_rest = templates.find(|(text, _)| text.is_some_and(|text| text.needs_rest()));
        match needs_rest {
            Some((_, key)) if !has_wildcard => Err(KeyError::new(
                key,
                "{rest} is what a * of the path stands for: give path one, such as /old/*",
            )),
            _ => Ok(()),
        }
    }
}

impl ChangeKeys {
    fn changes(&self) -> Changes {
        let pairs = |fields: &BTreeMap<Field, Value>| {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.0.clone(), value.0.clone()))
                .collect()
        };
        Changes {
            remove: self.remove.iter().map(|name| name.0.clone()).collect(),
            set: pairs(&self.set),
            add: pairs(&self.add),
        }
    }
}
