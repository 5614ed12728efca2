//! The container of model files and adapter files, checked before a byte of it is used; docs/EMBEDDER.md lays it out.
//!
//! A section starts on a multiple of [`ALIGNMENT`] and the gap before it is zero, so that weights can be used where they
//! lie.

use core::ops::Range;

use foremind_types::ModelId;

use crate::EmbedError;

/// First bytes of every model file. The line ending shows a file that was handled as text.
pub const MAGIC: [u8; 8] = *b"fmpack\r\n";
/// First bytes of every adapter file.
pub const ADAPTER_MAGIC: [u8; 8] = *b"fmadpt\r\n";
/// The newest format that this build reads, and the one that it writes.
pub const FORMAT: u16 = 1;
/// Sections start on a multiple of this many bytes of the file.
pub const ALIGNMENT: usize = 64;
/// Most sections of one file.
pub const SECTIONS_MAX: usize = 64;
/// Longest model id, in bytes.
pub const MODEL_ID_BYTES_MAX: usize = 128;

const FORMAT_AT: usize = MAGIC.len();
const SECTIONS_AT: usize = FORMAT_AT + 2;
const MODEL_ID_LENGTH_AT: usize = SECTIONS_AT + 2;
const FILE_LENGTH_AT: usize = MODEL_ID_LENGTH_AT + 4;
const MODEL_ID_AT: usize = FILE_LENGTH_AT + 8;
const HASH_BYTES: usize = 32;
const ROW_BYTES: usize = 4 + 8 + 8 + HASH_BYTES;

/// What a section holds. Readers skip kinds that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// WordPiece tokens, one a line, in the order of their ids.
    Vocabulary,
    /// The encoder as an ONNX file.
    Onnx,
    /// The encoder as entropy-coded int8 weights, see [`weights`](crate::weights).
    Int8,
    /// Low-rank changes and heads, see [`adapter`](crate::adapter).
    Adapter,
}

impl Section {
    fn kind(self) -> u32 {
        match self {
            Self::Vocabulary => 1,
            Self::Onnx => 2,
            Self::Int8 => 3,
            Self::Adapter => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Vocabulary => "vocabulary",
            Self::Onnx => "onnx",
            Self::Int8 => "int8",
            Self::Adapter => "adapter",
        }
    }

    fn of_kind(kind: u32) -> Option<Self> {
        [Self::Vocabulary, Self::Onnx, Self::Int8, Self::Adapter]
            .into_iter()
            .find(|section| section.kind() == kind)
    }
}

/// Packs a vocabulary (one token a line) and an ONNX encoder into one model file.
///
/// Equal arguments give equal bytes. The contents are not judged here: [`Pack::read`] and
/// `Embedder::load` do that. A `model_id` longer than [`MODEL_ID_BYTES_MAX`] or empty gives a file that
/// the reader refuses.
#[must_use]
pub fn write(model_id: &str, vocabulary: &[u8], onnx: &[u8]) -> Vec<u8> {
    write_sections(
        model_id,
        &[(Section::Vocabulary, vocabulary), (Section::Onnx, onnx)],
    )
}

/// Packs any sections of a model; see [`write`].
#[must_use]
pub fn write_sections(model_id: &str, sections: &[(Section, &[u8])]) -> Vec<u8> {
    write_container(MAGIC, model_id, sections)
}

/// Packs sections behind either magic; see [`write`].
pub(crate) fn write_container(
    magic: [u8; 8],
    model_id: &str,
    sections: &[(Section, &[u8])],
) -> Vec<u8> {
    let header_bytes = MODEL_ID_AT + model_id.len() + ROW_BYTES * sections.len() + HASH_BYTES;
    let mut end = header_bytes;
    let places: Vec<Range<usize>> = sections
        .iter()
        .map(|(_, bytes)| {
            let start = end.next_multiple_of(ALIGNMENT);
            end = start + bytes.len();
            start..end
        })
        .collect();

    let mut file = Vec::with_capacity(end);
    file.extend(magic);
    file.extend(FORMAT.to_le_bytes());
    // Saturated counts are refused by the reader, like every other count above its limit.
    file.extend(
        u16::try_from(sections.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    file.extend(
        u16::try_from(model_id.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes(),
    );
    file.extend([0; 2]);
    file.extend((end as u64).to_le_bytes());
    file.extend(model_id.as_bytes());
    for ((section, bytes), place) in sections.iter().zip(&places) {
        file.extend(section.kind().to_le_bytes());
        file.extend((place.start as u64).to_le_bytes());
        file.extend((place.len() as u64).to_le_bytes());
        file.extend(blake3::hash(bytes).as_bytes());
    }
    let header_hash = blake3::hash(&file);
    file.extend(header_hash.as_bytes());
    for ((_, bytes), place) in sections.iter().zip(&places) {
        file.resize(place.start, 0);
        file.extend_from_slice(bytes);
    }
    file
}

/// A checked model file. It owns the bytes and hands out slices of them.
pub struct Pack {
    bytes: Vec<u8>,
    model_id: ModelId,
    sections: Vec<(Section, Range<usize>)>,
}

impl Pack {
    /// Checks a whole model file: header, table, length and the checksum of every section.
    ///
    /// # Errors
    /// [`EmbedError::NotAModelFile`], [`EmbedError::NewerFormat`], [`EmbedError::WrongLength`],
    /// [`EmbedError::Altered`], [`EmbedError::BadHeader`]: the first that applies, in this order.
    pub fn read(bytes: Vec<u8>) -> Result<Self, EmbedError> {
        Self::read_container(MAGIC, bytes)
    }

    /// As [`Pack::read`], for either magic.
    pub(crate) fn read_container(magic: [u8; 8], bytes: Vec<u8>) -> Result<Self, EmbedError> {
        let cut = |expected: usize| EmbedError::WrongLength {
            expected: expected as u64,
            found: bytes.len() as u64,
        };
        let start = &bytes[..bytes.len().min(magic.len())];
        if start.is_empty() || !magic.starts_with(start) {
            let found = start.to_vec();
            return Err(if magic == MAGIC {
                EmbedError::NotAModelFile { found }
            } else {
                EmbedError::NotAnAdapterFile { found }
            });
        }
        // A file that is cut before it says how long it should be lacks at least this much.
        let fixed = bytes.first_chunk::<MODEL_ID_AT>().ok_or(cut(MODEL_ID_AT))?;
        let format = u16_at(fixed, FORMAT_AT);
        if format > FORMAT {
            return Err(EmbedError::NewerFormat {
                known: FORMAT,
                found: format,
            });
        }
        let file_bytes = u64_at(fixed, FILE_LENGTH_AT);
        if file_bytes != bytes.len() as u64 {
            return Err(EmbedError::WrongLength {
                expected: file_bytes,
                found: bytes.len() as u64,
            });
        }
        let sections = usize::from(u16_at(fixed, SECTIONS_AT));
        let model_id_bytes = usize::from(u16_at(fixed, MODEL_ID_LENGTH_AT));
        let table_at = MODEL_ID_AT + model_id_bytes;
        let hash_at = table_at + ROW_BYTES * sections;
        let header_bytes = hash_at + HASH_BYTES;
        let Some(header) = bytes.get(..header_bytes) else {
            return Err(cut(header_bytes));
        };
        check("header", &header[..hash_at], &header[hash_at..])?;

        // From here on the header is what a writer wrote; a wrong value is the writer's.
        let bad = |what| EmbedError::BadHeader { what };
        if format == 0 {
            return Err(bad("format 0"));
        }
        if sections == 0 || sections > SECTIONS_MAX {
            return Err(bad("the number of sections is not 1 to 64"));
        }
        if model_id_bytes == 0 || model_id_bytes > MODEL_ID_BYTES_MAX {
            return Err(bad("the model id is not 1 to 128 bytes long"));
        }
        let model_id = core::str::from_utf8(&header[MODEL_ID_AT..table_at])
            .map_err(|_| bad("the model id is not UTF-8"))?;

        let mut known = Vec::new();
        let mut end = header_bytes;
        for row in header[table_at..hash_at].chunks_exact(ROW_BYTES) {
            let kind = u32::from_le_bytes([row[0], row[1], row[2], row[3]]);
            let place = place(u64_at(row, 4), u64_at(row, 12), end, bytes.len())
                .ok_or(bad("a section lies outside the file or over another part"))?;
            if bytes[end..place.start].iter().any(|byte| *byte != 0) {
                return Err(bad("bytes between sections are not zero"));
            }
            end = place.end;
            let section = Section::of_kind(kind);
            let name = section.map_or("unknown section", Section::name);
            check(name, &bytes[place.clone()], &row[20..])?;
            if let Some(section) = section {
                if known.iter().any(|(other, _)| *other == section) {
                    return Err(bad("a section occurs twice"));
                }
                known.push((section, place));
            }
        }
        if end != bytes.len() {
            return Err(bad("bytes after the last section"));
        }
        let model_id = ModelId(model_id.to_owned());
        Ok(Self {
            bytes,
            model_id,
            sections: known,
        })
    }

    /// Which weights these are.
    #[must_use]
    pub fn model_id(&self) -> &ModelId {
        &self.model_id
    }

    /// Whether the file has a section.
    #[must_use]
    pub fn has(&self, section: Section) -> bool {
        self.sections.iter().any(|(other, _)| *other == section)
    }

    /// Frees what lies behind `end` bytes of a section; later sections are gone.
    pub(crate) fn truncate_section(&mut self, section: Section, end: usize) {
        let Some(place) = self
            .sections
            .iter()
            .position(|(other, _)| *other == section)
        else {
            return;
        };
        let range = &mut self.sections[place].1;
        range.end = range.end.min(range.start + end);
        let end = range.end;
        self.sections.retain(|(_, range)| range.end <= end);
        self.bytes.truncate(end);
        self.bytes.shrink_to_fit();
    }

    /// The bytes of a section, where they lie in the file.
    ///
    /// # Errors
    /// [`EmbedError::SectionMissing`].
    pub fn section(&self, section: Section) -> Result<&[u8], EmbedError> {
        self.sections
            .iter()
            .find(|(other, _)| *other == section)
            .map(|(_, place)| &self.bytes[place.clone()])
            .ok_or(EmbedError::SectionMissing {
                section: section.name(),
            })
    }
}

/// The bytes of a section, if they start aligned and close behind `end` and lie within the file.
fn place(offset: u64, length: u64, end: usize, file_bytes: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let stop = start.checked_add(usize::try_from(length).ok()?)?;
    (start == end.next_multiple_of(ALIGNMENT) && stop <= file_bytes).then_some(start..stop)
}

fn check(part: &'static str, bytes: &[u8], expected: &[u8]) -> Result<(), EmbedError> {
    let found = blake3::hash(bytes);
    if found.as_bytes() == expected {
        return Ok(());
    }
    let short = |hash: &[u8]| hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Err(EmbedError::Altered {
        part,
        expected: short(expected),
        found: short(found.as_bytes()),
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
