//! Vectors as this host makes them, for `tests/embed/identity.mjs`, which compares them with those of the wasm modules.
//!
//!     vectors MODEL [ADAPTER] < TEXTS > VECTORS
//!
//! A text a line. For each text: 384 f32 (the unit vector), and for each head of the adapter its vector as bytes, its
//! scale and its features, all little-endian.
#![allow(missing_docs)]

use std::io::{Read, Write};

use foremind_embed::{EMBEDDING_HEAD, Embedder};
use foremind_types::HeadId;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1);
    let model = paths.next().ok_or("which model file?")?;
    let mut embedder = Embedder::load(std::fs::read(model)?)?;
    if let Some(adapter) = paths.next() {
        embedder.load_adapter(std::fs::read(adapter)?)?;
    }
    let heads: Vec<HeadId> = embedder
        .heads()
        .filter(|head| head.0 != EMBEDDING_HEAD)
        .collect();
    let mut texts = String::new();
    std::io::stdin().read_to_string(&mut texts)?;
    let mut bytes = Vec::new();
    for text in texts.lines() {
        let unit = embedder.encode_f32(text)?;
        bytes.extend(unit.iter().flat_map(|x| x.to_le_bytes()));
        for embedding in embedder.encode(&[text], &heads)?.iter().flatten() {
            bytes.extend(embedding.vector.iter().map(|x| *x as u8));
            bytes.extend(embedding.scale.to_le_bytes());
            bytes.extend(embedding.features.iter().flat_map(|x| x.to_le_bytes()));
        }
    }
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}
