//! The f32 checkpoint: a file of the safetensors format.

use std::path::Path;

use foremind_embed::weights::Checkpoint;
use serde_json::Value;

use crate::error::Error;
use crate::files::read;

/// Length of the header (u64, little-endian), the header as JSON, then the numbers.
pub(crate) struct Safetensors {
    bytes: Vec<u8>,
    header: Value,
    numbers_at: usize,
}

impl Safetensors {
    /// # Errors
    /// [`Error::Io`]; [`Error::Input`] when the file has no such header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let bytes = read(path)?;
        let numbers_at = bytes
            .first_chunk()
            .and_then(|length| usize::try_from(u64::from_le_bytes(*length)).ok())
            .and_then(|length| length.checked_add(8));
        let header = numbers_at
            .and_then(|end| bytes.get(8..end))
            .and_then(|header| serde_json::from_slice(header).ok());
        match (numbers_at, header) {
            (Some(numbers_at), Some(header)) => Ok(Self {
                bytes,
                header,
                numbers_at,
            }),
            _ => Err(Error::Input(format!(
                "{} is no safetensors file",
                path.display()
            ))),
        }
    }
}

impl Checkpoint for Safetensors {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let tensor = &self.header[name];
        let offset = |at: usize| usize::try_from(tensor["data_offsets"][at].as_u64()?).ok();
        let bytes = self
            .bytes
            .get(self.numbers_at..)?
            .get(offset(0)?..offset(1)?)?;
        let numbers = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|x| f32::from_le_bytes(*x));
        (tensor["dtype"] == "F32").then(|| numbers.collect())
    }
}
