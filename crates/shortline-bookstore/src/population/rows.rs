//! The rows of each table, one at a time (clause 4.7.1).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use time::{Date, Duration};

use super::countries::COUNTRIES;
use super::{Population, Scale, TODAY};
use crate::images;
use crate::words::{
    CARD_TYPES, SHIP_TYPES, SUBJECTS, author_name, digsyl, figures, letters, one_of, title_name,
};

/// A field of a row to be loaded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Integer(i64),
    /// Letters, digits, spaces and the like: nothing that any syntax needs escaped.
    Text(String),
    Date(Date),
    /// A day and the seconds into it.
    Time(Date, u32),
}

/// One row, in the order of the table's columns.
pub(crate) type Fields = Vec<Field>;

const BACKINGS: [&str; 5] = ["HARDBACK", "PAPERBACK", "USED", "AUDIO", "LIMITED-EDITION"];
const STATUSES: [&str; 4] = ["PROCESSING", "SHIPPED", "PENDING", "DENIED"];
/// The tax, 8.25 %.
const TAX_PER_10_000: i64 = 825;

/// Calls `take` with every row of the table `name`. Tables that start empty have none. Order lines
/// and card transactions are made together with their orders, so each of the three makes all.
pub(crate) fn each_row<E>(
    population: Population,
    name: &str,
    mut take: impl FnMut(Fields) -> Result<(), E>,
) -> Result<(), E> {
    let Population { scale, seed } = population;
    let mut rows = |count: u64, table: u64, row: fn(&mut Draw, u64) -> Fields| {
        let mut draw = Draw::new(seed, table, scale);
        (1..=count).try_for_each(|id| take(row(&mut draw, id)))
    };
    match name {
        "country" => rows(COUNTRIES.len() as u64, 0, |_, id| country(id)),
        "address" => rows(scale.addresses(), 1, address),
        "customer" => rows(scale.customers, 2, customer),
        "author" => rows(scale.authors(), 3, author),
        "item" => rows(scale.items, 4, item),
        "orders" | "order_line" | "cc_xacts" => {
            let mut draw = Draw::new(seed, 5, scale);
            (1..=scale.orders()).try_for_each(|id| {
                let made = order(&mut draw, id);
                match name {
                    "orders" => take(made.order),
                    "cc_xacts" => take(made.payment),
                    _ => made.lines.into_iter().try_for_each(&mut take),
                }
            })
        }
        _ => Ok(()),
    }
}

/// The source of random rows.
struct Draw {
    rng: ChaCha8Rng,
    scale: Scale,
}

impl Draw {
    /// Each table has its own stream.
    fn new(seed: u64, table: u64, scale: Scale) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(table);
        Self { rng, scale }
    }

    fn number(&mut self, low: i64, high: i64) -> i64 {
        self.rng.random_range(low..=high)
    }

    fn upto(&mut self, count: u64) -> i64 {
        self.number(
            1,
            i64::try_from(count).expect("fewer rows than an INT can number"),
        )
    }

    fn letters(&mut self, low: usize, high: usize) -> Field {
        Field::Text(letters(&mut self.rng, low, high))
    }

    fn figures(&mut self, low: usize, high: usize) -> Field {
        Field::Text(figures(&mut self.rng, low, high))
    }

    fn one_of(&mut self, list: &[&str]) -> Field {
        Field::Text(one_of(&mut self.rng, list).to_owned())
    }

    /// A day between two years, including both, but without the days that some months lack.
    fn day(&mut self, first: i32, last: i32) -> Date {
        let year = self.rng.random_range(first..=last);
        let of_year = self.rng.random_range(1..=365);
        Date::from_ordinal_date(year, of_year).expect("every year has 365 days")
    }

    fn seconds(&mut self) -> u32 {
        self.rng.random_range(0..86_400)
    }
}

fn country(id: u64) -> Fields {
    let (name, exchange, currency) = COUNTRIES[usize::try_from(id - 1).expect("92 countries")];
    vec![number(id), text(name), text(exchange), text(currency)]
}

fn address(draw: &mut Draw, id: u64) -> Fields {
    vec![
        number(id),
        draw.letters(15, 40),
        draw.letters(15, 40),
        draw.letters(4, 30),
        draw.letters(2, 20),
        draw.letters(5, 10),
        Field::Integer(draw.upto(COUNTRIES.len() as u64)),
    ]
}

fn customer(draw: &mut Draw, id: u64) -> Fields {
    let user = digsyl(id, 0);
    let since = TODAY - Duration::days(draw.number(1, 730));
    let visited = (since + Duration::days(draw.number(0, 60))).min(TODAY);
    let login = draw.seconds();
    vec![
        number(id),
        text(&user),
        text(&user.to_lowercase()),
        draw.letters(8, 15),
        draw.letters(8, 15),
        Field::Integer(draw.upto(draw.scale.addresses())),
        draw.figures(9, 16),
        Field::Text(format!("{user}@{}.com", letters(&mut draw.rng, 2, 9))),
        Field::Date(since),
        Field::Date(visited),
        Field::Time(TODAY, login),
        Field::Time(TODAY + Duration::DAY, login),
        Field::Integer(draw.number(0, 50)),
        Field::Integer(0),
        Field::Integer(draw.number(0, 99_999)),
        Field::Date(draw.day(1880, 2000)),
        draw.letters(100, 500),
    ]
}

fn author(draw: &mut Draw, id: u64) -> Fields {
    let name = author_name(&mut draw.rng, draw.scale.items);
    vec![
        number(id),
        draw.letters(3, 20),
        Field::Text(format!("{}{name}", letters(&mut draw.rng, 1, 6))),
        draw.letters(1, 20),
        Field::Date(draw.day(1800, 1990)),
        draw.letters(125, 500),
    ]
}

fn item(draw: &mut Draw, id: u64) -> Fields {
    let items = draw.scale.items;
    let title = format!(
        "{} {} {}",
        letters(&mut draw.rng, 7, 20),
        title_name(&mut draw.rng, items),
        letters(&mut draw.rng, 7, 20)
    );
    // The first items give every author a book.
    let authors = draw.scale.authors();
    let author = if id <= authors {
        number(id)
    } else {
        Field::Integer(draw.upto(authors))
    };
    let published = draw.day(1930, TODAY.year() - 1);
    let mut fields = vec![
        number(id),
        Field::Text(title),
        author,
        Field::Date(published),
        draw.letters(14, 60),
        draw.one_of(&SUBJECTS),
        draw.letters(100, 500),
    ];
    fields.extend((0..5).map(|_| Field::Integer(draw.upto(items))));
    let price = draw.number(100, 999_999);
    let discount = draw.number(0, 50);
    fields.extend([
        Field::Integer(i64::from(images::THUMBNAIL_BYTES)),
        Field::Integer(i64::from(images::draw_size(&mut draw.rng))),
        Field::Integer(price),
        Field::Integer(price - price * discount / 100),
        Field::Date(published + Duration::days(draw.number(1, 30))),
        Field::Integer(draw.number(10, 30)),
        draw.letters(13, 13),
        Field::Integer(draw.number(20, 9999)),
        draw.one_of(&BACKINGS),
        dimensions(draw),
    ]);
    fields
}

fn dimensions(draw: &mut Draw) -> Field {
    let mut side = || format!("{}.{:02}", draw.number(0, 99), draw.number(1, 99));
    Field::Text(format!("{}x{}x{}", side(), side(), side()))
}

/// What belongs to one order.
struct Order {
    order: Fields,
    lines: Vec<Fields>,
    payment: Fields,
}

fn order(draw: &mut Draw, id: u64) -> Order {
    let customer = draw.upto(draw.scale.customers);
    let addresses = draw.scale.addresses();
    let day = TODAY - Duration::days(draw.number(1, 60));
    let seconds = draw.seconds();
    let shipped = (day + Duration::days(draw.number(0, 7))).min(TODAY);
    let subtotal = draw.number(1000, 999_999);
    let tax = subtotal * TAX_PER_10_000 / 10_000;
    let line_count = draw.number(1, 5);
    let total = subtotal + tax + 300 + 100 * line_count;
    let order = vec![
        number(id),
        Field::Integer(customer),
        Field::Time(day, seconds),
        Field::Integer(subtotal),
        Field::Integer(tax),
        Field::Integer(total),
        draw.one_of(&SHIP_TYPES),
        Field::Time(shipped, seconds),
        Field::Integer(draw.upto(addresses)),
        Field::Integer(draw.upto(addresses)),
        draw.one_of(&STATUSES),
    ];
    let lines = (1..=line_count)
        .map(|line| order_line(draw, id, line))
        .collect();
    let payment = vec![
        number(id),
        draw.one_of(&CARD_TYPES),
        draw.figures(16, 16),
        draw.letters(14, 30),
        Field::Date(TODAY + Duration::days(draw.number(10, 730))),
        draw.letters(15, 15),
        Field::Integer(total),
        Field::Time(shipped, seconds),
        Field::Integer(draw.upto(COUNTRIES.len() as u64)),
    ];
    Order {
        order,
        lines,
        payment,
    }
}

fn order_line(draw: &mut Draw, order: u64, line: i64) -> Fields {
    vec![
        number(order),
        Field::Integer(line),
        Field::Integer(draw.upto(draw.scale.items)),
        Field::Integer(draw.number(1, 300)),
        Field::Integer(draw.number(0, 30)),
        draw.letters(20, 100),
    ]
}

fn number(value: u64) -> Field {
    Field::Integer(i64::try_from(value).expect("fewer rows than an INT can number"))
}

fn text(value: &str) -> Field {
    Field::Text(value.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schema::TABLES;
    use std::convert::Infallible;

    const SMALL: Scale = Scale {
        items: 100,
        customers: 200,
    };

    fn all(seed: u64, name: &str) -> Vec<Fields> {
        let mut rows = Vec::new();
        let population = Population { scale: SMALL, seed };
        let Ok(()) = each_row(population, name, |row| {
            rows.push(row);
            Ok::<_, Infallible>(())
        });
        rows
    }

    #[test]
    fn there_are_as_many_rows_as_the_specification_wants() {
        let count = |name| all(1, name).len() as u64;
        assert_eq!(count("country"), 92);
        assert_eq!(count("address"), 400);
        assert_eq!(count("customer"), 200);
        assert_eq!(count("author"), 25);
        assert_eq!(count("item"), 100);
        assert_eq!(count("orders"), 180);
        assert_eq!(count("cc_xacts"), 180);
        assert!((180..=900).contains(&count("order_line")));
        assert_eq!(count("shopping_cart"), 0);
    }

    #[test]
    fn each_row_has_a_field_for_each_column() {
        for table in &TABLES {
            for row in all(2, table.name) {
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
            }
        }
    }

    #[test]
    fn a_seed_decides_all() {
        for table in &TABLES {
            assert_eq!(all(3, table.name), all(3, table.name));
        }
        assert_ne!(all(3, "item"), all(4, "item"));
    }

    #[test]
    fn texts_fit_their_columns_and_need_no_escape() {
        for table in &TABLES {
            for row in all(5, table.name) {
                for (field, (column, kind)) in row.iter().zip(table.columns) {
                    let Field::Text(text) = field else { continue };
                    let width = kind.split(['(', ')']).nth(1).unwrap().parse().unwrap();
                    assert!(text.len() <= width, "{column}: {text}");
                    assert!(!text.contains(['\'', '\\', '\t', '\n']), "{column}: {text}");
                }
            }
        }
    }

    #[test]
    fn every_author_has_a_book() {
        let mut with_book: Vec<_> = all(6, "item")
            .into_iter()
            .map(|row| row[2].clone())
            .collect();
        with_book.dedup();
        for id in 1..=25 {
            assert!(with_book.contains(&Field::Integer(id)));
        }
    }
}
