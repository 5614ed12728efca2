use serde::{Deserialize, Serialize};

/// What the core is given with every call, because it has no clock and no randomness of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ambient {
    /// Unix time in milliseconds. Need not be monotonic: ordering never rests on it alone.
    pub now_ms: i64,
    /// The owner's offset from UTC in minutes, east positive (ISO 8601), -1440 to 1440.
    pub utc_offset_min: i16,
    /// 32 bytes from a cryptographic source, fresh for each call. Record ids, writer ids and nonces are
    /// derived from it, so repeating it under one key would repeat nonces.
    #[serde(skip)]
    pub entropy: [u8; 32],
}
