//! A shop on a private database, with visitors, without the lab: `shop KIND ITEMS CUSTOMERS
//! BROWSERS SECONDS [application|database]`.
//!
//! KIND is postgres or mariadb. Thinking and session times are a tenth of 002's. The last word says
//! where locking is done. Prints the number and the times of each interaction.

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use shortline_bookstore::application::{Application, Options};
use shortline_bookstore::bed::{Bed, Sizing};
use shortline_bookstore::browser::{self, Arrivals, Mix, Summary, Times};
use shortline_bookstore::population::{Population, Scale, populate};
use shortline_bookstore::{Interaction, Locking};
use tokio::net::TcpListener;

const WARM_UP: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, items, customers, browsers, seconds, rest @ ..] = words.as_slice() else {
        return Err("usage: shop KIND ITEMS CUSTOMERS BROWSERS SECONDS [LOCKING]".into());
    };
    let locking = match rest {
        [] => Locking::Application,
        [word] if word == "application" => Locking::Application,
        [word] if word == "database" => Locking::Database,
        _ => return Err("LOCKING: want application or database".into()),
    };
    let scale = Scale {
        items: items.parse()?,
        customers: customers.parse()?,
    };
    let bed = Bed::start(kind.parse()?, Sizing::default()).await?;
    let filled = populate(bed.database(), Population { scale, seed: 1 }).await?;
    println!("{} rows in {:.1?}", filled.rows, filled.took);
    let options = Options {
        locking,
        items: scale.items,
        ..Options::default()
    };
    let application = Application::new(bed.database().clone(), options)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let shop = listener.local_addr()?;
    tokio::spawn(async move { application.serve(listener, std::future::pending()).await });
    let lasts = WARM_UP + Duration::from_secs(seconds.parse()?);
    let results = browser::run(browser::Options {
        shop,
        arrivals: Arrivals::Closed {
            browsers: browsers.parse()?,
        },
        mix: Mix::Shopping,
        mix_later: None,
        times: Times::APPLICATION_LOCKING.scaled(0.1),
        scale,
        pictures: true,
        patience: Duration::from_secs(30),
        lasts,
        seed: 1,
    })
    .await;
    print(&Summary::of(&results.records, WARM_UP, lasts));
    Ok(())
}

fn print(summary: &Summary) {
    println!(
        "{:.0} interactions a minute, failures {:?}",
        summary.throughput_per_min, summary.failures
    );
    println!(
        "{:24}{:>8}{:>8}{:>10}{:>10}",
        "", "count", "failed", "mean ms", "p99 ms"
    );
    for interaction in Interaction::ALL {
        if let Some(of) = summary.types.get(&interaction) {
            println!(
                "{interaction:24}{:8}{:8}{:10.2}{:10.2}",
                of.count,
                of.failed,
                1e3 * of.mean_s.mean,
                1e3 * of.p99_s
            );
        }
    }
}
