use foremind_types::{Embedding, EncodeFailure, HeadId, ModelId, VECTOR_DIMENSIONS};

/// Makes embeddings.
pub trait Encoder {
    /// `[text][head]`.
    ///
    /// # Errors
    /// Why there are none.
    fn encode(
        &mut self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure>;
}

/// An embedder that has not loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEncoder;

impl Encoder for NoEncoder {
    fn encode(&mut self, _: &[String], _: &[HeadId]) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        Err(EncodeFailure::NotReady)
    }
}

/// A deterministic stand-in for a model: each word adds its own pseudo-random direction, so texts that
/// share words are near each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct WordEncoder;

impl Encoder for WordEncoder {
    fn encode(
        &mut self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        let of_text = |text: &String| {
            let (vector, scale) = quantised(&direction(text));
            heads
                .iter()
                .map(|head| Embedding {
                    model_id: ModelId("words-1".to_owned()),
                    head_id: head.clone(),
                    vector: vector.clone(),
                    scale,
                    features: Vec::new(),
                })
                .collect()
        };
        Ok(texts.iter().map(of_text).collect())
    }
}

/// A unit vector.
fn direction(text: &str) -> Vec<f32> {
    let mut sum = vec![0.0_f32; VECTOR_DIMENSIONS];
    // Even a text without a word has a direction.
    sum[0] = 0.5;
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let mut bytes = [0; VECTOR_DIMENSIONS];
        if word.is_empty() {
            continue;
        }
        blake3::Hasher::new()
            .update(word.to_lowercase().as_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        for (one, byte) in sum.iter_mut().zip(bytes) {
            *one += f32::from(byte) / 127.5 - 1.0;
        }
    }
    let norm = sum.iter().map(|one| one * one).sum::<f32>().sqrt();
    sum.iter().map(|one| one / norm).collect()
}

fn quantised(unit: &[f32]) -> (Vec<i8>, f32) {
    let largest = unit.iter().fold(0.0_f32, |most, one| most.max(one.abs()));
    let scale = largest / 127.0;
    // `as` saturates; the quotient is within -127 to 127 anyway.
    let vector = unit.iter().map(|one| (one / scale).round() as i8).collect();
    (vector, scale)
}
