//! Fields of one CSV record (RFC 4180), of which some are wanted. A crate would want the whole file, and its records in order.

/// Where csvlog has the message.
pub(super) const MESSAGE: usize = 13;

/// The fields at these places, those that there are. `None` if a quote is open or something follows a closing one.
pub(crate) fn fields(text: &[u8], wanted: &[usize]) -> Option<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut rest = text;
    for place in 0.. {
        let field;
        (field, rest) = match rest.strip_prefix(b"\"") {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = rest.iter().position(|byte| *byte == b',');
                let (field, rest) = rest.split_at(end.unwrap_or(rest.len()));
                (field.to_vec(), rest)
            }
        };
        if wanted.contains(&place) {
            found.push(field);
        }
        match rest {
            [b',', after @ ..] => rest = after,
            [] => break,
            _ => return None,
        }
    }
    Some(found)
}

/// A field behind its first quote, and what follows its last; `None` if that is missing.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut field = Vec::new();
    let mut rest = text;
    loop {
        let at = rest.iter().position(|byte| *byte == b'"')?;
        field.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => return Some((field, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, wanted: &[usize]) -> Option<Vec<String>> {
        let fields = fields(text.as_bytes(), wanted)?;
        let shown = |field: &Vec<u8>| String::from_utf8_lossy(field).into_owned();
        Some(fields.iter().map(shown).collect())
    }

    #[test]
    fn quotes_and_commas_in_fields_are_read() {
        let is = |fields: &[&str]| Some(fields.iter().map(|field| (*field).to_owned()).collect());
        assert_eq!(
            read("a,\"b,\"\"c\"\"\nd\",e", &[1, 2]),
            is(&["b,\"c\"\nd", "e"])
        );
        assert_eq!(read("a,,", &[1, 2, 3]), is(&["", ""]));
        assert_eq!(read("a,\"b", &[0]), None);
        assert_eq!(read("a,\"b\"c", &[0]), None);
    }
}
