//! What ends a stream or a connection (RFC 9113 5.4, 7).

use std::fmt;

/// Why a stream or a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reason(u32);

impl Reason {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer does what the protocol does not allow.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Something failed here.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More came than a window allows, or a window is too large.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Something came for a half of a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame does not have its length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// Nothing was done for the stream.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not wanted any more.
    pub const CANCEL: Self = Self(8);
    /// The tables of header blocks differ from now on.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer makes work that nobody wants.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// The reason with this code.
    pub fn new(code: u32) -> Self {
        Self(code)
    }

    /// Its code.
    pub fn code(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "NO_ERROR",
            1 => "PROTOCOL_ERROR",
            2 => "INTERNAL_ERROR",
            3 => "FLOW_CONTROL_ERROR",
            4 => "SETTINGS_TIMEOUT",
            5 => "STREAM_CLOSED",
            6 => "FRAME_SIZE_ERROR",
            7 => "REFUSED_STREAM",
            8 => "CANCEL",
            9 => "COMPRESSION_ERROR",
            10 => "CONNECT_ERROR",
            11 => "ENHANCE_YOUR_CALM",
            12 => "INADEQUATE_SECURITY",
            13 => "HTTP_1_1_REQUIRED",
            code => return write!(formatter, "error {code}"),
        };
        formatter.write_str(name)
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HTTP/2: {why} ({reason})")]
pub struct ConnectionError {
    /// What the client is told.
    pub reason: Reason,
    /// What it did.
    pub why: &'static str,
}

/// The stream is over: reset by either side, or its connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is over: {0}")]
pub struct StreamOver(pub Reason);
