//! JSON for exports: our own, or that of a host whose language has one. `serde_json` is a tenth of the core module, tables for
//! numbers included, and JavaScript parses faster.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::lines;

/// A line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line(pub(crate) lines::Line);

/// From lines to JSON and back, by `serde`.
#[derive(Clone, Copy, Debug)]
pub struct Codec {
    /// The JSON of a line, without a line break; `None` for a number that it cannot hold.
    pub write: fn(&Line) -> Option<String>,
    /// The line of some JSON; `None` for anything else.
    pub read: fn(&str) -> Option<Line>,
}

static INSTALLED: OnceLock<Codec> = OnceLock::new();

/// Hands a codec over, once for the process and before anything is exported or imported. A second one changes nothing.
pub fn install(codec: Codec) {
    let _ = INSTALLED.set(codec);
}

/// The codec that was handed over, or else our own.
pub(crate) fn codec() -> Option<Codec> {
    #[cfg(feature = "json")]
    let own = Some(Codec {
        write: |line| serde_json::to_string(line).ok(),
        read: |text| serde_json::from_str(text).ok(),
    });
    #[cfg(not(feature = "json"))]
    let own = None;
    INSTALLED.get().copied().or(own)
}
