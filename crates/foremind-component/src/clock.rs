//! Time and randomness of the host.

use foremind_types::{Ambient, Error, ErrorCode};

use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random::get_random_bytes;

/// The host's clock and randomness.
pub(crate) struct Clock {
    utc_offset_min: i16,
}

impl Clock {
    pub(crate) fn new(utc_offset_min: i16) -> Result<Self, Error> {
        if (-1_440..=1_440).contains(&utc_offset_min) {
            return Ok(Self { utc_offset_min });
        }
        Err(Error::new(
            ErrorCode::InvalidArgument,
            "the offset from UTC must be -1440 to 1440 minutes",
        ))
    }

    /// What one step is given.
    pub(crate) fn ambient(&self) -> Result<Ambient, Error> {
        let now = wall_clock::now();
        let seconds_ms = i64::try_from(now.seconds)
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000));
        match (seconds_ms, <[u8; 32]>::try_from(get_random_bytes(32))) {
            (Some(seconds_ms), Ok(entropy)) => Ok(Ambient {
                now_ms: seconds_ms.saturating_add(i64::from(now.nanoseconds / 1_000_000)),
                utc_offset_min: self.utc_offset_min,
                entropy,
            }),
            _ => Err(Error::new(
                ErrorCode::Unsupported,
                "the host's clock or randomness cannot be used",
            )),
        }
    }
}
