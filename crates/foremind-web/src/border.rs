//! The one mapping of values and errors between the core and JavaScript.

use foremind_memory::json::Codec;
use foremind_types::{Ambient, Error, ErrorCode};
use js_sys::{JSON, Object, Reflect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};

/// A Rust value as plain objects, arrays, strings, numbers and `Uint8Array`s.
pub(crate) fn send<T: Serialize>(value: &T) -> Result<JsValue, JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true);
    value.serialize(&serializer).map_err(|_| {
        refuse(&Error::new(
            ErrorCode::Internal,
            "a result has a number that JavaScript cannot hold",
        ))
    })
}

/// A plain value as what the core expects. The cause is told without the value, which may be user text.
pub(crate) fn receive<T: DeserializeOwned>(value: JsValue, what: &str) -> Result<T, JsValue> {
    serde_wasm_bindgen::from_value(value).map_err(|_| {
        refuse(&Error::new(
            ErrorCode::InvalidArgument,
            format!("{what} has an unknown shape, or a field of another type or range"),
        ))
    })
}

/// A plain object whose field `tag` names the variant and whose other fields are the variant's: `{ kind: 'key', key }` is read
/// as `{ key: { key } }`. The tag is taken off here because serde, when it has to find it, keeps a copy of everything in a
/// form of its own and compiles each type once more to read that.
pub(crate) fn receive_tagged<T: DeserializeOwned>(
    value: &JsValue,
    tag: &str,
    what: &str,
) -> Result<T, JsValue> {
    let unknown = |_| {
        refuse(&Error::new(
            ErrorCode::InvalidArgument,
            format!("{what} is no object with a field {tag}"),
        ))
    };
    let tag = JsValue::from_str(tag);
    let variant = Reflect::get(value, &tag).map_err(unknown)?;
    let fields = Object::assign(&Object::new(), value.unchecked_ref());
    Reflect::delete_property(&fields, &tag).map_err(unknown)?;
    let tagged = Object::new();
    Reflect::set(&tagged, &variant, &fields).map_err(unknown)?;
    receive(tagged.into(), what)
}

/// JSON by the host's own functions.
pub(crate) const JSON_OF_HOST: Codec = Codec {
    write: |line| {
        let object = send(line).ok()?;
        JSON::stringify(&object).ok()?.as_string()
    },
    read: |text| {
        let object = JSON::parse(text).ok()?;
        serde_wasm_bindgen::from_value(object).ok()
    },
};

/// An error as JavaScript sees it: `{ code, message }`.
pub(crate) fn refuse(error: &Error) -> JsValue {
    // Two strings always serialise; the bare code would still tell what happened.
    serde_wasm_bindgen::to_value(error).unwrap_or_else(|_| JsValue::from_str(error.code.as_str()))
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
