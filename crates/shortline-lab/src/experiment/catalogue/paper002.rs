//! Paper 002: admission and shortest job first before a database (its Figs. 5, 7, 9, 10).

use shortline_bookstore::{Kind as Database, Locking};

use super::{Experiment, Figure, Kind, figure};
use crate::experiment::bookstore::{Design, Door, Load};

/// 002 goes from 50 to 300 with locking in the application and from 20 to 120 in the database; what
/// saturates a database of today is more.
const BROWSERS: &[Load] = &[
    Load::Browsers(50),
    Load::Browsers(100),
    Load::Browsers(200),
    Load::Browsers(400),
    Load::Browsers(600),
];
/// The first is to find what the database can do.
const ALTERNATING: &[Load] = &[Load::Browsers(200), Load::Alternating];
const DOORS: &[Door] = &[Door::None, Door::Fifo, Door::Sjf];

pub fn all() -> Vec<Experiment> {
    vec![
        bookstore(
            "002-application",
            Locking::Application,
            BROWSERS,
            vec![
                shown(
                    "002 Fig. 5",
                    "throughput: the gate holds its peak in overload, 941 a minute; without it 852 and then 589",
                ),
                shown(
                    "002 Fig. 9",
                    "mean response time of the finished at 250 clients: 11 s without the gate, 9 s FIFO, 0.5 s SJF",
                ),
            ],
        ),
        bookstore(
            "002-database",
            Locking::Database,
            BROWSERS,
            vec![
                shown(
                    "002 Fig. 7",
                    "the same with locking in the database: without the gate 515 a minute at 70 clients, then a collapse",
                ),
                shown(
                    "002 Fig. 10",
                    "mean response time there: SJF up to 4 times shorter than FIFO",
                ),
            ],
        ),
        bookstore(
            "002-open",
            Locking::Application,
            ALTERNATING,
            vec![shown(
                "",
                "open sessions at 0.6 and 1.3 of capacity in turn, drained, all counted: SJF 4 times shorter than FIFO",
            )],
        ),
    ]
}

fn bookstore(
    id: &'static str,
    locking: Locking,
    loads: &'static [Load],
    figures: Vec<Figure>,
) -> Experiment {
    Experiment {
        id,
        figures,
        kind: Kind::Bookstore(Design {
            databases: &Database::ALL,
            locking,
            doors: DOORS,
            loads,
        }),
    }
}

fn shown(name: &'static str, claim: &'static str) -> Figure {
    figure(name, claim, &[], Vec::new())
}
