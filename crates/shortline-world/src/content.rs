//! The content of files and responses. Each byte depends on whose it is and where it is, so that
//! none can be lost, duplicated or taken from elsewhere unnoticed.

/// The byte at `offset` of the content named `key`.
pub fn byte(key: u64, offset: u64) -> u8 {
    let mixed = (offset ^ key.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// `length` bytes from `offset` on.
pub fn piece(key: u64, offset: u64, length: usize) -> Vec<u8> {
    (offset..offset + length as u64)
        .map(|at| byte(key, at))
        .collect()
}

/// Checks a body against the expected content.
#[derive(Clone, Debug)]
pub struct Checked {
    key: u64,
    /// The position of the next byte.
    at: u64,
    /// Where it ends.
    end: u64,
}

impl Checked {
    /// The bytes `first..end` of the content named `key`.
    pub fn new(key: u64, first: u64, end: u64) -> Self {
        Self {
            key,
            at: first,
            end,
        }
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        for found in bytes {
            if self.at == self.end {
                return Err(format!("more than {} bytes", self.end));
            }
            let wanted = byte(self.key, self.at);
            if *found != wanted {
                return Err(format!("{found:#04x} at {} for {wanted:#04x}", self.at));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// How many bytes are missing.
    pub fn missing(&self) -> u64 {
        self.end - self.at
    }
}
