//! The embedder as a wasm module for JavaScript hosts: [`WebEmbedder`].

use foremind_embed::{EmbedError, Embedder};
use foremind_types::{Embedding, Error, HeadId};
use js_sys::{Array, Float32Array, Int8Array, Object, Reflect};
use wasm_bindgen::prelude::*;

/// TypeScript's view of what `encode` returns.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A sentence vector: `unit[i]` is about `vector[i] * scale`. Vectors of different models never mix. */
export interface Embedding {
    modelId: string;
    headId: string;
    vector: Int8Array;
    scale: number;
    features: Float32Array;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// What `encode` returns, indexed `[text][head]`.
    #[wasm_bindgen(typescript_type = "Embedding[][]")]
    pub type Embeddings;
}

/// A loaded model. Every failure throws an `Error` with a `code`.
#[wasm_bindgen]
pub struct WebEmbedder(Embedder);

#[wasm_bindgen]
impl WebEmbedder {
    /// Checks a model file and builds its network.
    ///
    /// # Errors
    /// `model-invalid` or `newer-format`, with what was expected and what was found.
    #[wasm_bindgen(constructor)]
    pub fn new(pack: Vec<u8>) -> Result<WebEmbedder, JsValue> {
        #[cfg(feature = "panic-hook")]
        console_error_panic_hook::set_once();
        Embedder::load(pack).map(Self).map_err(thrown)
    }

    /// Names the weights.
    #[wasm_bindgen(getter, js_name = modelId)]
    #[must_use]
    pub fn model_id(&self) -> String {
        self.0.model_id().0.clone()
    }

    /// Encodes at most 8 texts for each of `heads`; the result is indexed `[text][head]`.
    ///
    /// # Errors
    /// `text-empty`, `invalid-argument` (too many texts, a head that the model has not), `internal`.
    pub fn encode(&self, texts: Vec<String>, heads: Vec<String>) -> Result<Embeddings, JsValue> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let heads: Vec<HeadId> = heads.into_iter().map(HeadId).collect();
        let rows = self.0.encode(&texts, &heads).map_err(thrown)?;
        let rows: Array = rows
            .iter()
            .map(|row| row.iter().map(object).collect::<Array>())
            .collect();
        Ok(rows.unchecked_into())
    }

    /// The token ids that a text is encoded from, for checks of fidelity.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.0.tokens(text)
    }

    /// The unit vector of one text before it becomes int8: 384 numbers, for checks of fidelity.
    ///
    /// # Errors
    /// `text-empty`, `internal`.
    #[wasm_bindgen(js_name = encodeF32)]
    pub fn encode_f32(&self, text: &str) -> Result<Float32Array, JsValue> {
        let unit = self.0.encode_f32(text).map_err(thrown)?;
        Ok(Float32Array::from(&unit[..]))
    }
}

fn object(embedding: &Embedding) -> Object {
    let object = Object::new();
    set(
        &object,
        "modelId",
        &JsValue::from_str(&embedding.model_id.0),
    );
    set(&object, "headId", &JsValue::from_str(&embedding.head_id.0));
    set(&object, "vector", &Int8Array::from(&embedding.vector[..]));
    set(&object, "scale", &JsValue::from(embedding.scale));
    set(
        &object,
        "features",
        &Float32Array::from(&embedding.features[..]),
    );
    object
}

fn thrown(error: EmbedError) -> JsValue {
    let error = Error::from(error);
    let object = js_sys::Error::new(&error.message);
    set(&object, "code", &JsValue::from_str(error.code.as_str()));
    object.into()
}

/// Sets a property of an object that was just made here; that cannot fail, so the result says nothing.
fn set(object: &JsValue, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &JsValue::from_str(key), value);
}
