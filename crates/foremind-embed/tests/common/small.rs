//! A model of the shipped one's widths with few layers and words, from pseudo-random numbers.

use std::collections::HashMap;

use foremind_embed::pack::{self, Section};
use foremind_embed::weights::{Checkpoint, quantise};

use crate::common::{Seeded, VOCABULARY};

pub const WIDTH: usize = 384;
pub const WIDE: usize = 1536;
pub const LAYERS: usize = 3;

pub struct Small(HashMap<String, Vec<f32>>);

impl Checkpoint for Small {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        self.0.get(name).cloned()
    }
}

/// Numbers between -`scale` and `scale`.
pub fn numbers(seeded: &mut Seeded, length: usize, scale: f32) -> Vec<f32> {
    (0..length)
        .map(|_| (seeded.below(20_001) as f32 / 10_000.0 - 1.0) * scale)
        .collect()
}

pub fn small() -> Small {
    let mut seeded = Seeded(31);
    let mut tensors = HashMap::new();
    let mut put = |name: String, length: usize, scale: f32, offset: f32| {
        let mut values = numbers(&mut seeded, length, scale);
        values.iter_mut().for_each(|x| *x += offset);
        tensors.insert(name, values);
    };
    let words = VOCABULARY.lines().count();
    for (name, rows) in [("word", words), ("position", 512), ("token_type", 2)] {
        let name = format!("embeddings.{name}_embeddings.weight");
        put(name, rows * WIDTH, 0.1, 0.0);
    }
    let mut norms = vec!["embeddings".to_owned()];
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        for (part, outputs, inputs) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ] {
            put(
                format!("{layer}.{part}.weight"),
                outputs * inputs,
                0.08,
                0.0,
            );
            put(format!("{layer}.{part}.bias"), outputs, 0.1, 0.0);
        }
        norms.push(format!("{layer}.attention.output"));
        norms.push(format!("{layer}.output"));
    }
    for norm in norms {
        put(format!("{norm}.LayerNorm.weight"), WIDTH, 0.3, 1.0);
        put(format!("{norm}.LayerNorm.bias"), WIDTH, 0.1, 0.0);
    }
    Small(tensors)
}

/// The model file of [`small`].
pub fn small_pack(model_id: &str) -> Vec<u8> {
    let section = quantise(&small(), VOCABULARY.as_bytes()).unwrap();
    let sections = [
        (Section::Vocabulary, VOCABULARY.as_bytes()),
        (Section::Int8, &section[..]),
    ];
    pack::write_sections(model_id, &sections)
}
