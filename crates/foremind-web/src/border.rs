//! The one mapping of values and errors between the core and JavaScript.

use foremind_memory::json::{Codec, Line};
use foremind_types::{Ambient, Error, ErrorCode};
use js_sys::JSON;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsValue;

use crate::values::{Reader, Tagged, Writer};

/// A Rust value as plain objects, arrays, strings, numbers and `Uint8Array`s.
pub(crate) fn send<T: Serialize>(value: &T) -> Result<JsValue, JsValue> {
    value.serialize(Writer).map_err(|_| {
        refuse(&Error::new(
            ErrorCode::Internal,
            "a result has a number that JavaScript cannot hold",
        ))
    })
}

/// A plain value as what the core expects. The cause is told without the value, which may be user text.
pub(crate) fn receive<T: DeserializeOwned>(value: JsValue, what: &str) -> Result<T, JsValue> {
    T::deserialize(Reader(value)).map_err(|_| misshapen(what))
}

/// A plain object whose field `tag` names the variant and whose other fields are the variant's, `{ kind: 'key', key }`.
pub(crate) fn receive_tagged<T: DeserializeOwned>(
    object: &JsValue,
    tag: &'static str,
    what: &str,
) -> Result<T, JsValue> {
    T::deserialize(Tagged { object, tag }).map_err(|_| misshapen(what))
}

fn misshapen(what: &str) -> JsValue {
    refuse(&Error::new(
        ErrorCode::InvalidArgument,
        format!("{what} has an unknown shape, or a field of another type or range"),
    ))
}

/// JSON by the host's own functions.
pub(crate) const JSON_OF_HOST: Codec = Codec {
    write: |line| {
        let object = line.serialize(Writer).ok()?;
        JSON::stringify(&object).ok()?.as_string()
    },
    read: |text| {
        let object = JSON::parse(text).ok()?;
        Line::deserialize(Reader(object)).ok()
    },
};

/// An error as JavaScript sees it: `{ code, message }`.
pub(crate) fn refuse(error: &Error) -> JsValue {
    // Two strings always serialise; the bare code would still tell what happened.
    error
        .serialize(Writer)
        .unwrap_or_else(|_| JsValue::from_str(error.code.as_str()))
}

/// Time and randomness of one call.
pub(crate) fn ambient(
    now_ms: f64,
    utc_offset_min: f64,
    entropy: &[u8],
) -> Result<Ambient, JsValue> {
    let invalid = |message| refuse(&Error::new(ErrorCode::InvalidArgument, message));
    let Ok(entropy) = <[u8; 32]>::try_from(entropy) else {
        return Err(invalid("entropy must be 32 bytes"));
    };
    // 8.64e15 is the largest time value of ECMAScript, so the casts below are exact.
    if !(-8.64e15..=8.64e15).contains(&now_ms) {
        return Err(invalid("the time must be Unix milliseconds"));
    }
    if !(-1440.0..=1440.0).contains(&utc_offset_min) {
        return Err(invalid("the offset from UTC must be -1440 to 1440 minutes"));
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "both were checked against their range"
    )]
    Ok(Ambient {
        now_ms: now_ms as i64,
        utc_offset_min: utc_offset_min as i16,
        entropy,
    })
}
