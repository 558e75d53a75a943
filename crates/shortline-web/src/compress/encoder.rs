//! The codings themselves: a body on its way into one, whole or as it passes.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::GzEncoder;

use super::counts::Counts;
use super::streams::Place;
use crate::files::encoding::Coding;

/// The buffer of the brotli encoder between it and what it writes to.
const BROTLI_BUFFER_BYTES: usize = 4096;
/// How much work compressing may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The result is kept, and sent often.
    Kept,
    /// It is sent once, and made beside other work in at most about a megabyte of memory.
    Passing,
}

/// A body on its way into a coding, and where that is counted.
pub struct Encoder {
    way: Way,
    counts: Counts,
}

enum Way {
    /// RFC 8878.
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    /// RFC 7932.
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    /// RFC 1952.
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// An encoder of a body, whose length is `bytes` if that is known for sure.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(coding: Coding, effort: Effort, bytes: Option<u64>) -> io::Result<Self> {
        Ok(Self {
            way: Way::new(coding, effort, bytes)?,
            counts: Counts::of(coding, effort),
        })
    }

    /// Takes in more of the body.
    ///
    /// # Errors
    /// More came than was pledged, or there is no memory.
    pub fn write(&mut self, body: &[u8]) -> io::Result<()> {
        self.counts.add_in(body.len());
        self.way.writer().write_all(body)
    }

    /// Brings out all that was taken in, so that the client can decode it.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.way.writer().flush()
    }

    /// What has come out since this was last asked.
    pub fn take(&mut self) -> Bytes {
        let made = std::mem::take(self.way.made());
        self.counts.add_out(made.len());
        made.into()
    }

    /// Ends the body, and brings out the rest.
    ///
    /// # Errors
    /// As of [`Self::write`], or less came than was pledged.
    pub fn finish(self) -> io::Result<Bytes> {
        let rest = self.way.finish()?;
        self.counts.add_out(rest.len());
        Ok(rest.into())
    }
}

impl Way {
    fn new(coding: Coding, effort: Effort, bytes: Option<u64>) -> io::Result<Self> {
        let (zstd_level, brotli_level, gzip_level, window_bits) = match effort {
            // Beyond these a text becomes a few percent shorter, for several times the work.
            Effort::Kept => (6, 5, 6, 22),
            Effort::Passing => (3, 4, 5, 18),
        };
        Ok(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), zstd_level)?;
                match bytes {
                    Some(bytes) => encoder.set_pledged_src_size(Some(bytes))?,
                    None => encoder.window_log(window_bits)?,
                }
                Self::Zstd(Box::new(encoder))
            }
            Coding::Brotli => Self::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BROTLI_BUFFER_BYTES,
                brotli_level,
                window_bits,
            ))),
            Coding::Gzip => Self::Gzip(GzEncoder::new(
                Vec::new(),
                flate2::Compression::new(gzip_level),
            )),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Zstd(encoder) => &mut **encoder,
            Self::Brotli(encoder) => &mut **encoder,
            Self::Gzip(encoder) => encoder,
        }
    }

    fn made(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Zstd(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Gzip(encoder) => encoder.finish(),
        }
    }
}

/// Compresses a body as it passes.
pub struct Coder {
    place: Place,
    encoder: Encoder,
    /// Whether something was taken in and not brought out.
    holds: bool,
}

impl Coder {
    /// Begins a body. `None`: there is no memory.
    pub fn new(place: Place, coding: Coding) -> Option<Self> {
        let encoder = place.work(|| Encoder::new(coding, Effort::Passing, None));
        Some(Self {
            place,
            encoder: encoder.ok()?,
            holds: false,
        })
    }

    /// Takes in a piece, and gives what comes out.
    ///
    /// # Errors
    /// As of [`Encoder::write`].
    pub fn pass(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        let Self { place, encoder, .. } = self;
        place.work(|| encoder.write(piece))?;
        self.holds = true;
        Ok(self.encoder.take())
    }

    /// Brings out what was taken in.
    ///
    /// # Errors
    /// As of [`Encoder::write`].
    pub fn flush(&mut self) -> io::Result<Bytes> {
        if !std::mem::take(&mut self.holds) {
            return Ok(Bytes::new());
        }
        let Self { place, encoder, .. } = self;
        place.work(|| encoder.flush())?;
        Ok(self.encoder.take())
    }

    /// Ends the body, and gives the rest.
    ///
    /// # Errors
    /// As of [`Encoder::write`].
    pub fn finish(self) -> io::Result<Bytes> {
        let Self { place, encoder, .. } = self;
        place.work(|| encoder.finish())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn decoded(coding: Coding, body: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        match coding {
            Coding::Zstd => zstd::stream::read::Decoder::new(body)
                .unwrap()
                .read_to_end(&mut text),
            Coding::Brotli => brotli::Decompressor::new(body, 4096).read_to_end(&mut text),
            Coding::Gzip => flate2::read::GzDecoder::new(body).read_to_end(&mut text),
        }
        .unwrap();
        text
    }

    #[test]
    fn what_is_flushed_can_be_decoded_before_the_end() {
        for coding in Coding::ALL {
            let mut encoder = Encoder::new(coding, Effort::Passing, None).unwrap();
            encoder.write(b"data: 1\n\n").unwrap();
            encoder.flush().unwrap();
            let first = encoder.take();
            let mut text = [0; 9];
            match coding {
                Coding::Zstd => zstd::stream::read::Decoder::new(&first[..])
                    .unwrap()
                    .read_exact(&mut text),
                Coding::Brotli => brotli::Decompressor::new(&first[..], 4096).read_exact(&mut text),
                Coding::Gzip => flate2::read::GzDecoder::new(&first[..]).read_exact(&mut text),
            }
            .unwrap();
            assert_eq!(&text, b"data: 1\n\n", "{coding:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn what_comes_out_is_what_went_in(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3000), any::<bool>()), 0..6),
            kept: bool, pledged: bool,
        ) {
            let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.0.clone()).collect();
            let effort = if kept { Effort::Kept } else { Effort::Passing };
            for coding in Coding::ALL {
                let bytes = pledged.then_some(whole.len() as u64);
                let mut encoder = Encoder::new(coding, effort, bytes).unwrap();
                let mut coded = Vec::new();
                for (piece, flushed) in &pieces {
                    encoder.write(piece).unwrap();
                    if *flushed {
                        encoder.flush().unwrap();
                    }
                    coded.extend_from_slice(&encoder.take());
                }
                coded.extend_from_slice(&encoder.finish().unwrap());
                prop_assert_eq!(decoded(coding, &coded), whole.clone());
            }
        }
    }
}
