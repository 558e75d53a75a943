//! The parts of a statement, as far as these worlds need them.

/// The parts of a text between this byte, where it stands neither in a string nor in parentheses.
pub fn split(text: &str, between: u8) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
            None if byte == b'(' => depth += 1,
            None if byte == b')' => depth -= 1,
            None if byte == between && depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            None => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// The name of a function that is called, and what stands in its parentheses.
pub fn call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('(')?;
    Some((name, rest.strip_suffix(')')?))
}

/// The number of a statement, how long it takes in microseconds, and the bytes of its answer: `12, 500, 9000`.
pub fn numbers(arguments: &str) -> Option<[u64; 3]> {
    let mut numbers = arguments.split(", ").map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

/// The numbers of the first statement in a text that has some.
pub fn worked_on(text: &str) -> Option<[u64; 3]> {
    ["work(", "fail(", "state("].into_iter().find_map(|name| {
        let (_, rest) = text.split_once(name)?;
        numbers(rest.split_once(')')?.0)
    })
}

/// A text without the quotes around it.
pub fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inside = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    inside.unwrap_or(text)
}
