//! Packs an adapter from f32 tensors: docs/EMBEDDER.md says how they are named.
//!
//!     pack_adapter IN.safetensors OUT.fmadpt
#![allow(missing_docs)]

use foremind_embed::Part;
use foremind_embed::adapter::{self, Activation, Change, Content, HeadContent, Map, Pooling};
use foremind_types::ModelId;
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [from, to] = &paths[..] else {
        return Err("usage: pack_adapter IN.safetensors OUT.fmadpt".into());
    };
    let file = Safetensors::read(std::fs::read(from)?)?;
    let model_id = ModelId(file.word("model")?.to_owned());
    let packed = adapter::write(&model_id, &content(&file)?)?;
    std::fs::write(to, &packed)?;
    Ok(())
}

fn content(file: &Safetensors) -> Result<Content, Failure> {
    let mut content = Content::default();
    for layer in 0..usize::from(u8::MAX) {
        for part in Part::ALL {
            let name = format!("delta.{layer}.{}", format!("{part:?}").to_lowercase());
            if let Some(a) = file.tensor(&format!("{name}.a")) {
                let b = file.expect(&format!("{name}.b"))?;
                let rank = file.rows(&format!("{name}.a"));
                content.changes.push(Change {
                    layer,
                    part,
                    rank,
                    a,
                    b,
                });
            }
        }
    }
    let entries = file.header["__metadata__"]
        .as_object()
        .into_iter()
        .flatten();
    for (name, words) in entries {
        if let (Some(id), Some(words)) = (name.strip_prefix("head."), words.as_str()) {
            content.heads.push(head(file, id, words)?);
        }
    }
    if content.heads.is_empty() {
        return Err("the metadata names no head".into());
    }
    Ok(content)
}

fn head(file: &Safetensors, id: &str, words: &str) -> Result<HeadContent, Failure> {
    let mut head = HeadContent {
        id: id.to_owned(),
        adapted: false,
        vector: false,
        unit: false,
        pooling: Pooling::Mean,
        maps: Vec::new(),
    };
    for word in words.split_whitespace() {
        let activation = match word {
            "adapted" => {
                head.adapted = true;
                continue;
            }
            "vector" => {
                head.vector = true;
                continue;
            }
            "unit" => {
                head.unit = true;
                continue;
            }
            "mean" => continue,
            "first" => {
                head.pooling = Pooling::First;
                continue;
            }
            "attention" => {
                head.pooling = Pooling::Attention(file.expect(&format!("head.{id}.pool"))?);
                continue;
            }
            "none" => Activation::None,
            "relu" => Activation::Relu,
            "gelu" => Activation::Gelu,
            _ => return Err(format!("head {id}: unknown word `{word}`").into()),
        };
        let name = format!("head.{id}.{}", head.maps.len());
        head.maps.push(Map {
            activation,
            weights: file.expect(&format!("{name}.weight"))?,
            bias: file.expect(&format!("{name}.bias"))?,
        });
    }
    Ok(head)
}

struct Safetensors {
    header: Value,
    numbers: Vec<u8>,
}

impl Safetensors {
    fn read(bytes: Vec<u8>) -> Result<Self, Failure> {
        let length = bytes
            .first_chunk()
            .map(|length| u64::from_le_bytes(*length));
        let header = length
            .and_then(|length| usize::try_from(length).ok()?.checked_add(8))
            .and_then(|end| Some((bytes.get(8..end)?, bytes.get(end..)?)));
        let (header, numbers) = header.ok_or("no safetensors file")?;
        Ok(Self {
            header: serde_json::from_slice(header)?,
            numbers: numbers.to_vec(),
        })
    }

    fn word(&self, name: &str) -> Result<&str, Failure> {
        let word = self.header["__metadata__"][name].as_str();
        word.ok_or_else(|| format!("the metadata has no `{name}`").into())
    }

    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let tensor = &self.header[name];
        let offset = |at: usize| usize::try_from(tensor["data_offsets"][at].as_u64()?).ok();
        let bytes = self.numbers.get(offset(0)?..offset(1)?)?;
        let numbers = bytes.as_chunks::<4>().0.iter();
        (tensor["dtype"] == "F32").then(|| numbers.map(|x| f32::from_le_bytes(*x)).collect())
    }

    fn expect(&self, name: &str) -> Result<Vec<f32>, Failure> {
        let tensor = self.tensor(name);
        tensor.ok_or_else(|| format!("expected an F32 tensor `{name}`, found none").into())
    }

    fn rows(&self, name: &str) -> usize {
        self.header[name]["shape"][0]
            .as_u64()
            .and_then(|rows| usize::try_from(rows).ok())
            .unwrap_or_default()
    }
}
