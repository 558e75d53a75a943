//! The fields of messages, of rows and of statements.

/// The body of a DataRow.
pub fn columns(values: &[&[u8]]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend((value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    body
}

/// The numbers in the parentheses of a statement that has some.
pub fn numbers(text: &str) -> Option<Vec<u64>> {
    let (_, rest) = text.split_once('(')?;
    let (inside, _) = rest.split_once(')')?;
    inside
        .split(", ")
        .map(|number| number.parse().ok())
        .collect()
}

/// The first two arguments, `'a', 'b'` or `E'a',E'b'`.
pub fn quoted_pair(text: &str) -> (String, String) {
    let mut parts = text.split('\'').skip(1).step_by(2).map(str::to_owned);
    (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    )
}

/// The text up to a zero byte.
pub fn first_text(body: &[u8]) -> String {
    texts(body, 0)
}

/// The text after this many zero bytes.
pub fn texts(body: &[u8], at: usize) -> String {
    let text = body.split(|byte| *byte == 0).nth(at).unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The value of a Bind's only parameter, if it has one.
pub fn value(body: &[u8]) -> String {
    let names = body.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let after = names.map(|(at, _)| at + 1).nth(1).unwrap_or(body.len());
    // No formats, one parameter, its length.
    let value = body.get(after + 8..body.len().saturating_sub(2));
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}
