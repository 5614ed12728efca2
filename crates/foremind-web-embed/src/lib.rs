//! The embedder as a wasm module for JavaScript hosts: [`PackLoader`] takes the model file in pieces,
//! [`WebEmbedder`] turns texts into vectors.

use foremind_embed::{EmbedError, Embedder, TEXT_BYTES_MAX};
use foremind_types::{Embedding, Error, ErrorCode, HeadId};
use js_sys::{Array, Float32Array, Int8Array, JsString, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

/// TypeScript's view of what `encode` returns.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** A sentence vector: `unit[i]` is about `vector[i] * scale`. Vectors of different models or heads never mix. */
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

/// A model file on its way into the module's memory: made with its length, fed its bytes, finished.
///
/// ```js
/// const loader = new PackLoader(totalBytes);
/// for await (const chunk of response.body) loader.push(chunk);
/// const embedder = loader.finish();
/// ```
///
/// Each piece is copied once, straight to its place, so that JavaScript never holds the whole file.
#[wasm_bindgen]
pub struct PackLoader {
    bytes: Vec<u8>,
    total: usize,
}

#[wasm_bindgen]
impl PackLoader {
    /// Room for a file of `totalBytes`.
    ///
    /// # Errors
    /// `model-invalid` for a length that no model file has (0, more than 1 GiB), `unsupported` without the memory for it.
    #[wasm_bindgen(constructor)]
    pub fn new(total_bytes: f64) -> Result<PackLoader, JsValue> {
        #[cfg(feature = "panic-hook")]
        console_error_panic_hook::set_once();
        if !(1.0..=f64::from(LENGTH_MAX)).contains(&total_bytes) || total_bytes.fract() != 0.0 {
            return Err(thrown(Error::new(
                ErrorCode::ModelInvalid,
                format!("expected a model file of 1 to {LENGTH_MAX} bytes, found {total_bytes}"),
            )));
        }
        let total = total_bytes as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(total).map_err(|_| {
            thrown(Error::new(
                ErrorCode::Unsupported,
                format!("no memory for a model file of {total} bytes"),
            ))
        })?;
        Ok(Self { bytes, total })
    }

    /// Appends the next bytes of the file.
    ///
    /// # Errors
    /// `model-invalid` when they are more than the length said; the loader keeps what it had.
    pub fn push(&mut self, chunk: &Uint8Array) -> Result<(), JsValue> {
        let found = self.bytes.len() + chunk.length() as usize;
        if found > self.total {
            return Err(thrown(EmbedError::WrongLength {
                expected: self.total as u64,
                found: found as u64,
            }));
        }
        let at = self.bytes.len();
        self.bytes.resize(found, 0);
        chunk.copy_to(&mut self.bytes[at..]);
        Ok(())
    }

    /// Bytes taken so far.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn received(&self) -> f64 {
        self.bytes.len() as f64
    }

    /// Checks the file and builds its network; the loader is used up.
    ///
    /// # Errors
    /// `model-invalid` or `newer-format`, with what was expected and what was found.
    pub fn finish(self) -> Result<WebEmbedder, JsValue> {
        if self.bytes.len() != self.total {
            return Err(thrown(EmbedError::WrongLength {
                expected: self.total as u64,
                found: self.bytes.len() as u64,
            }));
        }
        Embedder::load(self.bytes)
            .map(WebEmbedder)
            .map_err(thrown::<EmbedError>)
    }
}

/// Longest model file, in bytes.
const LENGTH_MAX: u32 = 1 << 30;

/// A loaded model. Every failure throws an `Error` with a `code`.
#[wasm_bindgen]
pub struct WebEmbedder(Embedder);

#[wasm_bindgen]
impl WebEmbedder {
    /// Checks a model file that is in memory as a whole and builds its network.
    ///
    /// # Errors
    /// `model-invalid` or `newer-format`, with what was expected and what was found.
    #[wasm_bindgen(constructor)]
    pub fn new(pack: Vec<u8>) -> Result<WebEmbedder, JsValue> {
        #[cfg(feature = "panic-hook")]
        console_error_panic_hook::set_once();
        Embedder::load(pack).map(Self).map_err(thrown::<EmbedError>)
    }

    /// Runs an ONNX sentence encoder of the user's own: inputs `input_ids`, `attention_mask`, `token_type_ids`, states
    /// of 384 numbers, with its WordPiece vocabulary (uncased, one token a line). `modelId` names it in every vector.
    ///
    /// # Errors
    /// `model-invalid`, with what was expected and what was found.
    #[cfg(feature = "onnx")]
    #[wasm_bindgen(js_name = fromOnnx)]
    pub fn from_onnx(
        model_id: &str,
        vocabulary: &[u8],
        onnx: &[u8],
    ) -> Result<WebEmbedder, JsValue> {
        Self::new(foremind_embed::pack::write(model_id, vocabulary, onnx))
    }

    /// Adds the heads of an adapter file.
    ///
    /// # Errors
    /// `model-invalid` or `newer-format`, with what was expected and what was found; nothing is added then.
    #[wasm_bindgen(js_name = loadAdapter)]
    pub fn load_adapter(&mut self, file: Vec<u8>) -> Result<(), JsValue> {
        self.0.load_adapter(file).map_err(thrown::<EmbedError>)
    }

    /// The heads that texts can be encoded for.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn heads(&self) -> Vec<String> {
        self.0.heads().map(|head| head.0).collect()
    }

    /// Names the weights.
    #[wasm_bindgen(getter, js_name = modelId)]
    #[must_use]
    pub fn model_id(&self) -> String {
        self.0.model_id().0.clone()
    }

    /// Encodes at most 8 texts for each of `heads`; the result is indexed `[text][head]`. For progress and abort, hand
    /// in fewer at a time.
    ///
    /// # Errors
    /// `text-empty`, `invalid-argument` (too many texts, a head that the model has not), `internal`.
    pub fn encode(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string[]")] texts: Vec<JsString>,
        heads: Vec<String>,
    ) -> Result<Embeddings, JsValue> {
        let texts: Vec<String> = texts.iter().map(read).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let heads: Vec<HeadId> = heads.into_iter().map(HeadId).collect();
        let rows = self
            .0
            .encode(&texts, &heads)
            .map_err(thrown::<EmbedError>)?;
        let rows: Array = rows
            .iter()
            .map(|row| row.iter().map(object).collect::<Array>())
            .collect();
        Ok(rows.unchecked_into())
    }

    /// The token ids that a text is encoded from, for checks of fidelity.
    #[must_use]
    pub fn tokens(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsString,
    ) -> Vec<u32> {
        self.0.tokens(&read(text))
    }

    /// The unit vector of one text before it becomes int8: 384 numbers, for checks of fidelity.
    ///
    /// # Errors
    /// `text-empty`, `internal`.
    #[wasm_bindgen(js_name = encodeF32)]
    pub fn encode_f32(
        &self,
        #[wasm_bindgen(unchecked_param_type = "string")] text: &JsString,
    ) -> Result<Float32Array, JsValue> {
        let unit = self
            .0
            .encode_f32(&read(text))
            .map_err(thrown::<EmbedError>)?;
        Ok(Float32Array::from(&unit[..]))
    }
}

/// As much of a text as is read: cut before it is copied into the module, whose memory never shrinks again. A UTF-16
/// unit is at least one byte of UTF-8, so this cuts no less than the embedder will.
fn read(text: &JsString) -> String {
    let most = TEXT_BYTES_MAX as u32;
    if text.length() <= most {
        return text.into();
    }
    text.slice(0, most).into()
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

fn thrown<E: Into<Error>>(error: E) -> JsValue {
    let error = error.into();
    let object = js_sys::Error::new(&error.message);
    set(&object, "code", &JsValue::from_str(error.code.as_str()));
    object.into()
}

/// Sets a property of an object that was just made here; that cannot fail, so the result says nothing.
fn set(object: &JsValue, key: &str, value: &JsValue) {
    let _ = Reflect::set(object, &JsValue::from_str(key), value);
}
