//! `shortline uplink`: the kernel's priority bands on an interface, for link mode `bands`.

use clap::Subcommand;
use shortline_link::qdisc::{
    Band, DeviceBands, Installation, Kind, QdiscError, Traffic, install, remove,
};
use shortline_sched::units::Rate;

use shortline_command::CommandError;
use shortline_command::output::print;
use shortline_table::{Table, or_dash};

const EXAMPLES: &str = "\
Examples:
  sudo shortline uplink install --dev eth0 --rate 100mbit
  sudo shortline serve /srv/www --link-mode bands
  shortline uplink show --dev eth0
  sudo shortline uplink remove --dev eth0";

/// Flags of `shortline uplink`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a qdisc with priority bands at the interface's root
    Install(Install),
    /// Remove what `install` made, and restore what was there before
    Remove(Device),
    /// Print the bands: the SO_PRIORITY of each, and the traffic through it
    Show(Device),
}

#[derive(Debug, clap::Args)]
struct Device {
    /// The interface
    #[arg(long = "dev", value_name = "DEVICE")]
    device: String,
}

#[derive(Debug, clap::Args)]
struct Install {
    #[command(flatten)]
    device: Device,
    /// The uplink's rate, such as 100mbit; not needed if the interface itself is the bottleneck
    ///
    /// It counts IP bytes and 14 a packet. `htb` needs it; the other kinds are put inside a `tbf` of
    /// this rate.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The number of bands; the first is for control packets [default: as many as the qdisc can
    /// have]
    #[arg(long, value_name = "N")]
    bands: Option<usize>,
    /// The qdisc: prio (2 to 16 bands), htb (2 to 8, needs a rate), pfifo_fast (3) or fq (3)
    /// [default: the first of these that the kernel has]
    ///
    /// The bands are strict, except that each of `htb` keeps 8 kbit/s and those of `fq` are weighted
    /// (Linux 6.7).
    #[arg(long, value_name = "KIND")]
    kind: Option<Kind>,
    /// Replace a qdisc that someone configured; `remove` restores it
    #[arg(long)]
    replace: bool,
}

/// Runs the command.
///
/// # Errors
/// [`CommandError`], one line.
pub fn run(args: Args) -> Result<(), CommandError> {
    match args.command {
        Command::Install(asked) => {
            let installed = install(&asked.into()).map_err(failed)?;
            let bands = table(&installed.bands);
            print(&format!("{bands}before: {}\n", installed.before))
        }
        Command::Remove(of) => {
            let before = remove(&of.device).map_err(failed)?;
            print(&format!("{}: {before} is back\n", of.device))
        }
        Command::Show(of) => print(&table(&DeviceBands::read(&of.device).map_err(failed)?)),
    }
}

impl From<Install> for Installation {
    fn from(asked: Install) -> Self {
        Self {
            device: asked.device.device,
            kind: asked.kind,
            rate: asked.rate,
            bands: asked.bands,
            replace: asked.replace,
        }
    }
}

fn failed(error: QdiscError) -> CommandError {
    CommandError::told(error.is_usage(), error)
}

/// The bands, one per line, and the device as a whole.
fn table(of: &DeviceBands) -> String {
    let mut table = Table::new(&[
        "band",
        "priority",
        "bytes",
        "packets",
        "drops",
        "waiting",
        "waiting bytes",
    ]);
    for band in &of.bands {
        table.row(row(&band.name, priority(band), &band.traffic));
    }
    table.row(row("all", String::new(), &of.traffic));
    let (device, kind, bands) = (&of.device, of.kind, of.bands.len());
    format!("{device}: {kind}, {bands} bands\n{table}")
}

fn row(band: &str, priority: String, traffic: &Traffic) -> Vec<String> {
    let counters = [
        traffic.bytes,
        traffic.packets,
        traffic.drops,
        traffic.backlog_packets,
        traffic.backlog_bytes,
    ];
    let counters = counters.map(|count| or_dash(count, |count| count.to_string()));
    let mut cells = vec![band.to_owned(), priority];
    cells.extend(counters);
    cells
}

/// A class id in hexadecimal, as in `tc`.
fn priority(band: &Band) -> String {
    if band.priority > 0xffff {
        format!("0x{:x}", band.priority)
    } else {
        band.priority.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_classes_in_hexadecimal_and_what_is_not_counted() {
        let band = |name: &str, priority, traffic| Band {
            name: name.to_owned(),
            priority,
            traffic,
        };
        let traffic = Traffic {
            bytes: Some(1514),
            packets: Some(1),
            drops: Some(0),
            ..Traffic::default()
        };
        let bands = DeviceBands {
            device: "eth0".to_owned(),
            kind: Kind::Htb,
            bands: vec![
                band("1:11", 0x1_0011, traffic),
                band("1", 6, Traffic::default()),
            ],
            unset: Some(0),
            traffic,
        };
        let text = table(&bands);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0].join(" "), "eth0: htb, 2 bands");
        assert_eq!(lines[2], ["1:11", "0x10011", "1514", "1", "0", "-", "-"]);
        assert_eq!(lines[3], ["1", "6", "-", "-", "-", "-", "-"]);
        assert_eq!(lines[4], ["all", "1514", "1", "0", "-", "-"]);
    }
}
