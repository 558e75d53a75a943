//! Checks a body with `Transfer-Encoding: chunked` against its grammar (RFC 9112 7.1), byte by byte and without a
//! buffer.
//!
//! ```text
//! chunk     = size [ chunk-ext ] CRLF data CRLF          the last one has the size 0 and no data
//! chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
//! after the last chunk: *( field-line CRLF ) CRLF
//! ```
//!
//! Many accept anything as an extension, even a lone `;` or blanks before the end of the line. A proxy in front of us
//! may read such a line differently, and then the two of us disagree on where the request ends. Blanks are
//! allowed only where the grammar has them (BWS): before and between the parts of an extension. A line ends with CRLF and
//! has at most [`LINE_BYTES_MAX`] bytes. The fields after the last chunk are parsed as those of a head (`message::chunks`).

/// The most bytes in a chunk's size with its extensions, or in a field after the last chunk.
pub const LINE_BYTES_MAX: usize = 4096;

/// What is wrong with a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The size is not a number.
    #[error("a chunk's size is not a number: want hexadecimal digits")]
    Size,
    /// The size is too large.
    #[error("a chunk's size is too large: want less than 2^64")]
    TooLarge,
    /// What follows the size is not an extension.
    #[error("a chunk's extension is malformed: want ;name or ;name=value, and no blank at the end")]
    Extension,
    /// The size with its extensions, or a trailer, is too long.
    #[error("a line of the chunked body has more than {LINE_BYTES_MAX} bytes")]
    Line,
    /// A line or the data does not end with CRLF.
    #[error("a line or a chunk of the body does not end with CRLF")]
    End,
}

/// The state of a chunked body that is being read.
#[derive(Clone, Debug)]
pub struct Chunked {
    state: State,
    /// Whether anything may follow a size.
    is_tolerant: bool,
    /// Bytes of the current chunk still to come.
    left_bytes: u64,
    line_bytes: usize,
}

/// What was read last, or what must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first digit.
    Begin,
    Size,
    /// A blank after the size or after a whole extension. Another extension must follow.
    Blank,
    Semicolon,
    Name,
    BlankAfterName,
    Equals,
    Value,
    Quoted,
    Escaped,
    Unquoted,
    /// Behind a size, where everything is tolerated.
    Anything,
    SizeCr,
    Data,
    DataEnd,
    DataCr,
    /// At the start of a line after the last chunk.
    Trailer,
    TrailerText,
    TrailerCr,
    LastCr,
    End,
}

impl Default for Chunked {
    fn default() -> Self {
        Self {
            state: State::Begin,
            is_tolerant: false,
            left_bytes: 0,
            line_bytes: 0,
        }
    }
}

/// What a chunked body goes on with, and how many bytes of it are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A size, or the end of a chunk.
    Line(usize),
    /// Data.
    Data(usize),
    /// Fields after the last chunk, or the line that ends them.
    Trailers(usize),
}

impl Part {
    /// How many bytes are there.
    pub fn bytes(self) -> usize {
        match self {
            Self::Line(bytes) | Self::Data(bytes) | Self::Trailers(bytes) => bytes,
        }
    }
}

impl Chunked {
    /// A body from a backend, which may write anything behind a size: some pad it with blanks. Nobody else reads the body, so
    /// nobody can read it differently.
    pub fn of_backend() -> Self {
        Self {
            is_tolerant: true,
            ..Self::default()
        }
    }

    /// Whether the body has ended.
    pub fn has_ended(&self) -> bool {
        self.state == State::End
    }

    /// Reads the next part of `bytes`, of which there are some.
    ///
    /// # Errors
    /// [`ChunkError`] if the bytes so far cannot begin a chunked body.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Part, ChunkError> {
        if self.state == State::Data {
            return Ok(Part::Data(self.pass_data(bytes.len())));
        }
        let is_behind = self.is_behind_the_last();
        let mut at = 0;
        while at < bytes.len() && !self.has_ended() {
            self.state = self.after(bytes[at])?;
            at += 1;
            self.count_line()?;
            if self.state == State::Data || self.is_behind_the_last() != is_behind {
                break;
            }
        }
        Ok(match is_behind {
            true => Part::Trailers(at),
            false => Part::Line(at),
        })
    }

    fn is_behind_the_last(&self) -> bool {
        use State::*;
        matches!(self.state, Trailer | TrailerText | TrailerCr | LastCr | End)
    }

    /// Passes over data, at most so many bytes. Returns how many there were.
    fn pass_data(&mut self, bytes_max: usize) -> usize {
        let left = usize::try_from(self.left_bytes).unwrap_or(usize::MAX);
        let bytes = left.min(bytes_max);
        self.left_bytes -= bytes as u64;
        if self.left_bytes == 0 {
            self.state = State::DataEnd;
        }
        bytes
    }

    /// The state after a byte outside a chunk's data.
    fn after(&mut self, byte: u8) -> Result<State, ChunkError> {
        use State::*;
        let blank = matches!(byte, b' ' | b'\t');
        Ok(match (self.state, byte) {
            (Begin | Size, byte) if byte.is_ascii_hexdigit() => {
                self.take_digit(byte)?;
                Size
            }
            (Begin, _) => return Err(ChunkError::Size),
            (Size | Anything, b'\r') if self.is_tolerant => SizeCr,
            (Size, b';' | b' ' | b'\t') | (Anything, _) if self.is_tolerant => Anything,
            (Size | Name | Value | Unquoted, b'\r') => SizeCr,
            (Size | Blank | Name | BlankAfterName | Value | Unquoted, b';') => Semicolon,
            (Size | Blank | Value | Unquoted, _) if blank => Blank,
            (Size, _) => return Err(ChunkError::Size),
            (Semicolon, _) if blank => Semicolon,
            (Semicolon | Name, byte) if is_token(byte) => Name,
            (Name | BlankAfterName, b'=') => Equals,
            (Name | BlankAfterName, _) if blank => BlankAfterName,
            (Equals, _) if blank => Equals,
            (Equals, b'"') => Quoted,
            (Equals | Value, byte) if is_token(byte) => Value,
            (Quoted, b'"') => Unquoted,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, byte) if is_text(byte) => Quoted,
            (Semicolon | Name | BlankAfterName | Equals | Value, _)
            | (Quoted | Escaped | Unquoted | Blank | Anything, _) => {
                return Err(ChunkError::Extension);
            }
            (SizeCr, b'\n') if self.left_bytes == 0 => Trailer,
            (SizeCr, b'\n') => Data,
            (DataEnd, b'\r') => DataCr,
            (DataCr, b'\n') => Begin,
            (Trailer, b'\r') => LastCr,
            (TrailerText, b'\r') => TrailerCr,
            (TrailerCr, b'\n') => Trailer,
            (LastCr, b'\n') => End,
            (Trailer | TrailerText, byte) if byte != b'\n' => TrailerText,
            _ => return Err(ChunkError::End),
        })
    }

    fn take_digit(&mut self, byte: u8) -> Result<(), ChunkError> {
        let digit = char::from(byte).to_digit(16).unwrap_or_default();
        let more = self.left_bytes.checked_mul(16);
        let more = more.and_then(|bytes| bytes.checked_add(u64::from(digit)));
        self.left_bytes = more.ok_or(ChunkError::TooLarge)?;
        Ok(())
    }

    fn count_line(&mut self) -> Result<(), ChunkError> {
        let between = matches!(self.state, State::Begin | State::Data | State::Trailer);
        self.line_bytes = if between { 0 } else { self.line_bytes + 1 };
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(ChunkError::Line);
        }
        Ok(())
    }
}

/// RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What may stand between quotes, escaped or not (RFC 9110 5.6.4).
fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// `Some(n)`: the body ends after `n` bytes.
    fn read(body: &[u8]) -> Result<Option<usize>, ChunkError> {
        read_on(&mut Chunked::default(), body)
    }

    fn read_on(chunked: &mut Chunked, bytes: &[u8]) -> Result<Option<usize>, ChunkError> {
        let mut at = 0;
        while at < bytes.len() && !chunked.has_ended() {
            at += chunked.next(&bytes[at..])?.bytes();
        }
        Ok(chunked.has_ended().then_some(at))
    }

    #[test]
    fn a_body_ends_where_its_last_line_does() {
        for body in [
            "0\r\n\r\n",
            "2\r\nhi\r\n0\r\n\r\n",
            "2;a\r\nhi\r\n000;b=c\r\n\r\n",
            "2;a=\"x;\\\"\\\\ \ty\";c = d ; e\r\nhi\r\n0\r\n\r\n",
            "2 ;\t a\r\nhi\r\n0\r\n\r\n",
            "A\r\n0\r\n\r\n;;;;;\r\n0\r\na: b\r\nc:\r\n\r\n",
            "1;x=\"\u{e4}\"\r\nh\r\n0\r\n\r\n",
        ] {
            let followed = [body.as_bytes(), b"GET / HTTP/1.1"].concat();
            assert_eq!(read(&followed), Ok(Some(body.len())), "{body:?}");
        }
        assert_eq!(read(b"2\r\nhi\r\n0\r\na: b"), Ok(None));
    }

    #[test]
    fn what_others_may_let_pass_is_refused() {
        for (body, why) in [
            ("2;\r\nhi\r\n0\r\n\r\n", ChunkError::Extension),
            ("2\r\nhi\r\n0;\r\n\r\n", ChunkError::Extension),
            ("2;;a\r\n", ChunkError::Extension),
            ("2; \r\n", ChunkError::Extension),
            ("2;a \r\n", ChunkError::Extension),
            ("2;a b\r\n", ChunkError::Extension),
            ("2;a=\r\n", ChunkError::Extension),
            ("2;a=b c\r\n", ChunkError::Extension),
            ("2;a=b \r\n", ChunkError::Extension),
            ("2;a=\"b\r\n", ChunkError::Extension),
            ("2;a=\"b\"c\r\n", ChunkError::Extension),
            ("2;=b\r\n", ChunkError::Extension),
            ("2;a\x01\r\n", ChunkError::Extension),
            ("2;a=\"\0\"\r\n", ChunkError::Extension),
            ("2;a\n", ChunkError::Extension),
            ("2;a\rb\r\n", ChunkError::End),
            ("2 \r\n", ChunkError::Extension),
            ("2\t\r\n", ChunkError::Extension),
            ("2 2\r\n", ChunkError::Extension),
            (" 2\r\n", ChunkError::Size),
            ("\r\n", ChunkError::Size),
            ("0x2\r\n", ChunkError::Size),
            ("-2\r\n", ChunkError::Size),
            ("2\n", ChunkError::Size),
            ("10000000000000000\r\n", ChunkError::TooLarge),
            ("2\r\nhi!\r\n", ChunkError::End),
            ("2\r\nhi\n", ChunkError::End),
            ("0\r\na: b\nc: d\r\n\r\n", ChunkError::End),
            ("0\r\na: b\rc\r\n\r\n", ChunkError::End),
            ("0\r\n\n", ChunkError::End),
        ] {
            assert_eq!(read(body.as_bytes()), Err(why), "{body:?}");
        }
    }

    #[test]
    fn a_line_has_an_end() {
        let within = format!("1;{}\r\nx\r\n", "a".repeat(LINE_BYTES_MAX - 3));
        assert_eq!(read(within.repeat(20).as_bytes()), Ok(None));
        for endless in ["0", "1;aaaaa", "0\r\nX: "] {
            let body = format!(
                "{endless}{}",
                endless.chars().last().unwrap().to_string().repeat(9000)
            );
            assert_eq!(read(body.as_bytes()), Err(ChunkError::Line), "{endless:?}");
        }
    }

    /// A chunked body and what it carries.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let extension = "( ?; ?[a-z]{1,4}( ?= ?([a-z]{1,4}|\"[a-z ;=]{0,4}\"))?){0,2}";
        let chunk = (proptest::collection::vec(any::<u8>(), 1..40), extension);
        let trailer = "([A-Za-z]{1,5}: [ -~]{0,9}\r\n){0,2}";
        (proptest::collection::vec(chunk, 0..6), extension, trailer).prop_map(
            |(chunks, extension, trailer)| {
                let mut bytes = Vec::new();
                for (data, extension) in chunks {
                    bytes.extend(format!("{:x}{extension}\r\n", data.len()).bytes());
                    bytes.extend(data);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(format!("0{extension}\r\n{trailer}\r\n").bytes());
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_well_formed_is_read_to_its_end(body in body(), after in any::<[u8; 4]>()) {
            let followed = [&body[..], &after].concat();
            prop_assert_eq!(read(&followed), Ok(Some(body.len())));
        }

        /// The result does not depend on how the bytes are split, whichever of them are changed.
        #[test]
        fn the_pieces_do_not_matter(
            body in body(),
            change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut body = body;
            if let Some((place, byte)) = change {
                let place = place.index(body.len());
                body[place] = byte;
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let whole = read(&body);
            let mut pieces = Chunked::default();
            let mut told = Ok(None);
            for pair in cuts.windows(2) {
                told = match read_on(&mut pieces, &body[pair[0]..pair[1]]) {
                    Ok(None) => continue,
                    Ok(Some(bytes)) => Ok(Some(pair[0] + bytes)),
                    Err(error) => Err(error),
                };
                break;
            }
            prop_assert_eq!(told, whole);
        }
    }
}
