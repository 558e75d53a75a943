//! The admin endpoint of a gate: a live page, `/status`, `/history`, `/metrics`, `/clients`, `/ready`, and commands by `POST /command`.
//!
//! `/ready` reports whether to send clients here: the gate is neither paused nor ending, and the backend can be
//! reached. If the last connection to the backend succeeded, that is enough. Otherwise a connection is tried now.
//! (MySQL counts connections without a login as errors, `max_connect_errors`.)
//!
//! Commands are accepted from the users that need no password at the admin database. These are root, the gate's own
//! user and those of `--admin-uids`, on this machine.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value};
use shortline_daemon::admin::{Asker, Later, Page, Pages};
use shortline_gate::postgres::{Answer, Rights, check_asker, check_uid};
use shortline_gate::relay::Upstream;

use super::console::Console;
use super::settings::Settings;
use super::status::View;
use super::{clients, metrics, page};

/// The longest time to connect to the backend.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// The pages of a gate.
pub struct AdminPages {
    view: View,
    console: Console,
    uids: Vec<u32>,
    /// `None` for gate http, whose backends have their own checks.
    upstream: Option<Upstream>,
}

impl AdminPages {
    /// The pages of this gate.
    pub fn new(view: &View, console: &Console, settings: &Settings) -> Self {
        Self {
            view: view.clone(),
            console: console.clone(),
            uids: settings.admin_uids.clone(),
            // Several are asked all the time.
            upstream: view.clients().and_then(|_| settings.upstream.parse().ok()),
        }
    }
}

impl Pages for AdminPages {
    const PATHS: &'static str =
        "/, /status, /history, /metrics, /clients, /ready or /healthz, or POST /command";

    fn page(&self, path: &str) -> Option<Page> {
        let view = &self.view;
        match path {
            "/" => Some(Page::html(page::html())),
            "/status" => Some(Page::json(&view.status())),
            "/history" => Some(Page::json(&view.samples())),
            "/metrics" => Some(Page::metrics(metrics::render(&view.status()))),
            "/clients" => Some(Page::json(&clients::all(view.clients()))),
            _ => None,
        }
    }

    fn slow_page(&self, path: &str) -> Option<Later> {
        if path != "/ready" {
            return None;
        }
        let (view, upstream) = (self.view.clone(), self.upstream.clone());
        Some(Box::pin(async move {
            match why_not_ready(&view, upstream.as_ref()).await {
                None => Page::line(StatusCode::OK, "ready"),
                Some(reason) => Page::line(StatusCode::SERVICE_UNAVAILABLE, reason),
            }
        }))
    }

    fn post(&self, path: &str, body: String, asker: Asker) -> Option<Later> {
        if path != "/command" {
            return None;
        }
        let (console, uids) = (self.console.clone(), self.uids.clone());
        Some(Box::pin(async move {
            let checked = tokio::task::spawn_blocking(move || match asker {
                Asker::Tcp { peer, local } => check_asker(peer, local, &uids),
                Asker::User(uid) => check_uid(uid, &uids),
            });
            match checked.await {
                Ok(Ok(())) => {}
                Ok(Err(not_heard)) => return Page::line(StatusCode::FORBIDDEN, not_heard),
                Err(error) => return Page::line(StatusCode::INTERNAL_SERVER_ERROR, error),
            }
            match console.answer(body, Rights::Act).await {
                Ok(answer) => shown(&answer),
                Err(problem) => Page::line(StatusCode::BAD_REQUEST, problem),
            }
        }))
    }
}

/// The rows of a table as objects, or else the tag of the command.
fn shown(answer: &Answer) -> Page {
    let Some(table) = &answer.table else {
        return Page::line(StatusCode::OK, answer.tag);
    };
    let object = |row: &Vec<String>| {
        let pairs = table.columns.iter().zip(row);
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())));
        pairs.collect::<Map<_, _>>()
    };
    Page::json(&table.rows.iter().map(object).collect::<Vec<_>>())
}

async fn why_not_ready(view: &View, upstream: Option<&Upstream>) -> Option<String> {
    if view.gate().closed().all {
        return Some("the gate is paused".to_owned());
    }
    if view.is_ending() {
        return Some("the gate ends".to_owned());
    }
    if view.pool().is_some_and(|pool| !pool.has_primary()) {
        return Some("no server is known as the primary".to_owned());
    }
    let (clients, upstream) = (view.clients()?, upstream?);
    if clients.is_backend_reached() {
        return None;
    }
    match upstream.connect(CONNECT_TIME_MAX).await {
        Ok(_) => {
            clients.note_backend(true);
            None
        }
        Err(error) => Some(error.to_string()),
    }
}
