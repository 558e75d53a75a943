//! The line the server logs at its start: which sites and files, at which rate and how that is known, in
//! which order, for whom.

use shortline_link::device::Device;
use shortline_link::qdisc::shaper_of;
use shortline_link::{LinkConfig, LinkMode};
use shortline_sched::Urgency;

use super::root::Root;
use super::settings::Settings;
use super::sites::SiteSettings;

/// The line.
pub fn render(settings: &Settings) -> String {
    let link = &settings.link;
    let mut line = format!("{}; {}", what(settings), rate(settings));
    if link.mode != LinkMode::Off {
        let loopback = if link.schedule_loopback {
            "clients on the loopback interface are scheduled, too"
        } else {
            "clients on the loopback interface are not scheduled"
        };
        line += &format!("; {}; {loopback}", order(link));
    }
    line
}

/// The sites that the line names, at most.
const SITES_MAX: usize = 4;

/// The files and the number of routes of each site. Of many sites the first are named.
fn what(settings: &Settings) -> String {
    let sites = match settings.sites.as_slice() {
        [only] if only.names.is_empty() => return of_site(only),
        sites => sites,
    };
    let named = sites.iter().take(SITES_MAX);
    let mut told: Vec<String> = named
        .map(|site| match site.names.is_empty() {
            true => format!("all other names ({})", of_site(site)),
            false => format!("{} ({})", site.label(), of_site(site)),
        })
        .collect();
    if let Some(more) = sites.len().checked_sub(SITES_MAX).filter(|more| *more > 0) {
        told.push(format!("{more} more"));
    }
    let count = match sites.len() {
        1 => "1 site".to_owned(),
        count => format!("{count} sites"),
    };
    format!("{count}: {}", told.join(", "))
}

fn of_site(site: &SiteSettings) -> String {
    let files = files(&site.root);
    match site.routes.len() {
        0 => files,
        1 => format!("{files}, 1 route"),
        routes => format!("{files}, {routes} routes"),
    }
}

fn files(root: &Root) -> String {
    let folder = root.resolved().unwrap_or_default();
    match root {
        Root::Nowhere => "no files".to_owned(),
        Root::Named(_) => format!("files of {}", folder.display()),
        Root::Current => format!(
            "files of the current folder, {}, as no ROOT is named",
            folder.display()
        ),
    }
}

/// The uplink's rate, and how it is known.
fn rate(settings: &Settings) -> String {
    let link = &settings.link;
    let given = link.rate.map(|rate| format!("uplink {rate} (given)"));
    match link.mode {
        LinkMode::Off => "uplink off: nothing is scheduled".to_owned(),
        LinkMode::Paced => given.unwrap_or_default(),
        LinkMode::Auto => stated_by_the_interface(settings)
            .unwrap_or_else(|| "uplink auto (the rate is found out while serving)".to_owned()),
        LinkMode::Slots | LinkMode::Writers => {
            let rate = given.unwrap_or_else(|| "uplink's rate not needed".to_owned());
            format!("{rate}, {} {}", link.slots_max, link.mode)
        }
        LinkMode::Bands => "uplink ordered by the interface's own bands".to_owned(),
    }
}

/// The rate of the interface that is named, or that owns an address to listen on.
fn stated_by_the_interface(settings: &Settings) -> Option<String> {
    let named = settings.link.device.clone();
    let device = named.or_else(|| {
        let addresses = settings.listen.iter();
        let mut addresses = addresses.filter_map(|listen| Some(listen.address.tcp()?.ip()));
        addresses.find_map(Device::name_of)
    })?;
    let shaper = shaper_of(&device)?;
    Some(format!(
        "uplink {} (stated by {device}: {})",
        shaper.rate, shaper.kind
    ))
}

fn order(link: &LinkConfig) -> String {
    let policy = format!("policy {}", link.policy);
    match link.urgency {
        Urgency::None => policy,
        Urgency::Aging(aging) => format!("{policy}, aging {aging}"),
        Urgency::Growing(growing) => format!("{policy}, growing {growing}"),
    }
}
