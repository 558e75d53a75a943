//! The order of a paper's figures: figures, tables, sections, each by number.

/// The sort key of a figure's name, such as `000 Fig. 9, Table II B` or `004 sec. 5.3.3`: its kind,
/// its number, the rest.
pub fn key(name: &str) -> (usize, Vec<u32>, String) {
    const KINDS: [&str; 3] = ["Fig. ", "Table ", "sec. "];
    let (_, place) = name.split_once(' ').unwrap_or(("", name));
    let kind = KINDS.iter().position(|kind| place.starts_with(kind));
    let Some(kind) = kind else {
        return (KINDS.len(), Vec::new(), place.into());
    };
    let place = &place[KINDS[kind].len()..];
    let numeral = |c: char| c.is_ascii_digit() || c == '.' || c == 'I';
    let end = place.find(|c| !numeral(c)).unwrap_or(place.len());
    let (number, rest) = place.split_at(end);
    (kind, number.split('.').map(value).collect(), rest.into())
}

/// Reads a number in Arabic or Roman numerals. The papers use Roman ones up to III.
fn value(number: &str) -> u32 {
    number.parse().unwrap_or(number.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_before_tables_before_sections_by_number() {
        let sorted = [
            "000 Fig. 6",
            "000 Fig. 9, Table II B",
            "000 Fig. 9, Table II C",
            "000 Fig. 10, Table II E",
            "000 Fig. 17, 10 Mbit/s",
            "000 Fig. 17, 100 Mbit/s",
            "000 Table I",
            "000 Table II A",
            "000 Table 3, 10 Mbit/s",
            "000 sec. 4, load 1.4",
            "000 sec. 5.1 B, five delays",
            "000 sec. 5.2, setup J",
            "000 sec. 5.3.3, 10 Mbit/s",
            "000 sec. 6.1",
            "000 aging",
        ];
        let mut names = sorted;
        names.reverse();
        names.sort_by_key(|name| key(name));
        assert_eq!(names, sorted);
    }
}
