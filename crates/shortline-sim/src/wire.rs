//! What a response costs on the link.
//!
//! The link carries more than the body: Ethernet, IP and TCP headers for each segment, and for each
//! request the handshake, acknowledgements, the end of the connection and the response's head. With
//! b body bytes in segments of s bytes
//!
//! ```text
//! wire bytes = b + per_packet * ceil(b / s) + per_request
//! ```
//!
//! A measured run gives per_request exactly: what the device sent, less bodies and packet heads,
//! over the number of requests ([`WireModel::calibrate`]).

use std::num::NonZeroU64;

/// The cost of a response on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireModel {
    /// What each segment costs beside its payload, in bytes.
    pub per_packet_bytes: u64,
    /// The largest payload of a segment, in bytes.
    pub segment_bytes: NonZeroU64,
    /// What each request costs beside the segments of its body, in bytes.
    pub per_request_bytes: u64,
}

/// The device sent less than the bodies and packets that it supposedly carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    /// The count is too small.
    #[error("the device sent {device_bytes} bytes: the responses alone take {responses_bytes}")]
    TooFewBytes {
        /// What the device sent.
        device_bytes: u64,
        /// Bodies and their packets.
        responses_bytes: u64,
    },
    /// There is nothing to divide by.
    #[error("no responses: at least one is needed to calibrate")]
    NoResponses,
}

impl Default for WireModel {
    /// TCP over IPv4 with timestamps over Ethernet, frames of 1514 bytes: 14 + 20 + 32
    /// per segment of 1448. A connection per request: 480 bytes for its handshake,
    /// acknowledgements, end and a usual response head.
    fn default() -> Self {
        const SEGMENT_BYTES: NonZeroU64 = NonZeroU64::new(1448).expect("invariant: above 0");
        Self {
            per_packet_bytes: 66,
            segment_bytes: SEGMENT_BYTES,
            per_request_bytes: 480,
        }
    }
}

impl WireModel {
    /// What the link carries for a response with a body of so many bytes.
    pub fn wire_bytes(&self, body_bytes: u64) -> u64 {
        self.body_bytes(body_bytes)
            .saturating_add(self.per_request_bytes)
    }

    /// The same model with the per-request cost under which responses with these bodies add up to
    /// what the device sent, to half a byte a request.
    ///
    /// # Errors
    /// [`CalibrationError`] if there are no bodies, or if they and their packets are more
    /// than the device sent.
    pub fn calibrate(
        self,
        bodies_bytes: &[u64],
        device_bytes: u64,
    ) -> Result<Self, CalibrationError> {
        let requests = bodies_bytes.len() as u64;
        if requests == 0 {
            return Err(CalibrationError::NoResponses);
        }
        let responses_bytes = bodies_bytes.iter().fold(0, |sum: u64, &body| {
            sum.saturating_add(self.body_bytes(body))
        });
        let rest_bytes =
            device_bytes
                .checked_sub(responses_bytes)
                .ok_or(CalibrationError::TooFewBytes {
                    device_bytes,
                    responses_bytes,
                })?;
        Ok(Self {
            per_request_bytes: rest_bytes.saturating_add(requests / 2) / requests,
            ..self
        })
    }

    /// A body and the heads of its packets.
    fn body_bytes(&self, body_bytes: u64) -> u64 {
        let packets = body_bytes.div_ceil(self.segment_bytes.get());
        body_bytes.saturating_add(packets.saturating_mul(self.per_packet_bytes))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_whole_segments() {
        let model = WireModel::default();
        assert_eq!(model.wire_bytes(0), 480);
        assert_eq!(model.wire_bytes(1448), 1448 + 66 + 480);
        assert_eq!(model.wire_bytes(1449), 1449 + 132 + 480);
        assert_eq!(model.wire_bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn refuses_counts_that_cannot_be() {
        let model = WireModel::default();
        assert_eq!(
            model.calibrate(&[], 100),
            Err(CalibrationError::NoResponses)
        );
        assert_eq!(
            model.calibrate(&[1000], 1065),
            Err(CalibrationError::TooFewBytes {
                device_bytes: 1065,
                responses_bytes: 1066
            })
        );
    }

    proptest! {
        #[test]
        fn calibrated_responses_add_up(
            bodies in prop::collection::vec(0..100_000u64, 1..100),
            overhead in 0..100_000u64,
        ) {
            let bare = WireModel { per_request_bytes: 0, ..WireModel::default() };
            let sum = |model: WireModel| bodies.iter().map(|&body| model.wire_bytes(body)).sum::<u64>();
            let device_bytes = sum(bare) + overhead;
            let model = WireModel::default().calibrate(&bodies, device_bytes).unwrap();
            prop_assert!(sum(model).abs_diff(device_bytes) <= bodies.len() as u64 / 2);
        }
    }
}
