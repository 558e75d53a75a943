//! The specification's random words and numbers (clause 4.6.2), for population and browsers.

use rand::Rng;

const SYLLABLES: [&str; 10] = ["BA", "OG", "AL", "RI", "RE", "SE", "AT", "UL", "IN", "NG"];
const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// `DigSyl(D, N)`: the decimal digits of `number`, padded with zeros to `digits` (0: no padding),
/// each as a syllable.
pub(crate) fn digsyl(number: u64, digits: usize) -> String {
    let figures = format!("{number:0digits$}");
    let syllable = |figure: u8| SYLLABLES[usize::from(figure - b'0')];
    figures.bytes().map(syllable).collect()
}

/// A string of letters, from `low` to `high` long.
pub(crate) fn letters(rng: &mut impl Rng, low: usize, high: usize) -> String {
    let length = rng.random_range(low..=high);
    let letter = |_| char::from(LETTERS[rng.random_range(0..LETTERS.len())]);
    (0..length).map(letter).collect()
}

/// A string of digits, from `low` to `high` long.
pub(crate) fn figures(rng: &mut impl Rng, low: usize, high: usize) -> String {
    let length = rng.random_range(low..=high);
    let figure = |_| char::from(b'0' + rng.random_range(0..10u8));
    (0..length).map(figure).collect()
}

/// `NURand(A, 1, high)` (clause 2.1.13, in the wording of TPC-C): a returning customer, some far
/// more often than others. `A` depends on the number of customers.
pub(crate) fn customer(rng: &mut impl Rng, customers: u64) -> u64 {
    let mask = match customers {
        0..10_000 => 1023,
        10_000..40_000 => 4095,
        40_000..160_000 => 16_383,
        160_000..640_000 => 65_535,
        640_000..2_560_000 => 262_143,
        _ => 1_048_575,
    };
    let mixed = rng.random_range(0..=mask) | rng.random_range(1..=customers);
    mixed % customers + 1
}

/// The name within a title, which a search by title looks for. There are a fifth as many names as
/// items, so a search finds about five.
pub(crate) fn title_name(rng: &mut impl Rng, items: u64) -> String {
    digsyl(rng.random_range(1..=(items / 5).max(1)), 7)
}

/// The name within an author's last name. There are a tenth as many as items.
pub(crate) fn author_name(rng: &mut impl Rng, items: u64) -> String {
    digsyl(rng.random_range(1..=(items / 10).max(1)), 7)
}

/// The subjects of books (clause 4.7).
pub(crate) const SUBJECTS: [&str; 24] = [
    "ARTS",
    "BIOGRAPHIES",
    "BUSINESS",
    "CHILDREN",
    "COMPUTERS",
    "COOKING",
    "HEALTH",
    "HISTORY",
    "HOME",
    "HUMOR",
    "LITERATURE",
    "MYSTERY",
    "NON-FICTION",
    "PARENTING",
    "POLITICS",
    "REFERENCE",
    "RELIGION",
    "ROMANCE",
    "SELF-HELP",
    "SCIENCE-NATURE",
    "SCIENCE-FICTION",
    "SPORTS",
    "YOUTH",
    "TRAVEL",
];

/// How orders are shipped.
pub(crate) const SHIP_TYPES: [&str; 6] = ["AIR", "UPS", "FEDEX", "SHIP", "COURIER", "MAIL"];

/// What orders are paid with.
pub(crate) const CARD_TYPES: [&str; 5] = ["VISA", "MASTERCARD", "DISCOVER", "AMEX", "DINERS"];

/// One of a list.
pub(crate) fn one_of<T: Copy>(rng: &mut impl Rng, list: &[T]) -> T {
    list[rng.random_range(0..list.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn digits_become_syllables() {
        assert_eq!(digsyl(1, 0), "OG");
        assert_eq!(digsyl(288_000, 0), "ALININBABABA");
        assert_eq!(digsyl(42, 7), "BABABABABAREAL");
    }

    #[test]
    fn customers_that_come_back_are_customers() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for customers in [1, 7, 2880, 288_000] {
            for _ in 0..1000 {
                assert!((1..=customers).contains(&customer(&mut rng, customers)));
            }
        }
    }
}
