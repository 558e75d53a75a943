//! The text of statements: one way to write them for both databases.

use super::Kind;

/// `statement` with `$1, $2...` for each `?` if the database needs that, and with its route
/// appended as in SQLCommenter (google.github.io/sqlcommenter).
pub(super) fn rendered(kind: Kind, statement: &str, route: Option<&str>) -> String {
    let mut text = String::with_capacity(statement.len() + 40);
    match kind {
        Kind::MariaDb => text.push_str(statement),
        Kind::Postgres => {
            for (index, part) in statement.split('?').enumerate() {
                if index > 0 {
                    text.push('$');
                    text.push_str(&index.to_string());
                }
                text.push_str(part);
            }
        }
    }
    if let Some(route) = route {
        text.push_str(" /*route='");
        text.push_str(route);
        text.push_str("'*/");
    }
    text
}

/// `text` as a string literal. Only for text that this crate makes itself (letters, digits,
/// spaces).
pub(crate) fn quoted(text: &str) -> String {
    debug_assert!(!text.contains(['\'', '\\']), "a literal: {text}");
    format!("'{text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_for_postgresql_and_tags_appended() {
        let statement = "SELECT a FROM t WHERE b = ? AND c LIKE ?";
        assert_eq!(
            rendered(Kind::Postgres, statement, Some("home")),
            "SELECT a FROM t WHERE b = $1 AND c LIKE $2 /*route='home'*/"
        );
        assert_eq!(rendered(Kind::MariaDb, statement, None), statement);
    }
}
