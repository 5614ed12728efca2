use core::fmt;

use foremind_types::{Error, ErrorCode, HeadId, ModelId};

/// Why a model file is refused or a text has no vector. No variant carries text that a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbedError {
    /// The file does not start as a model file does. The host's file is a different one.
    NotAModelFile {
        /// The first bytes found, at most eight.
        found: Vec<u8>,
    },
    /// The file does not start as an adapter file does. The host's file is a different one.
    NotAnAdapterFile {
        /// The first bytes found, at most eight.
        found: Vec<u8>,
    },
    /// The adapter was made for another model; on this one its numbers mean nothing. The host's files do not fit.
    AdapterOfAnotherModel {
        /// The model that is loaded.
        expected: ModelId,
        /// The model that the adapter names.
        found: ModelId,
    },
    /// The adapter's bytes are whole but cannot be used.
    BadAdapter {
        /// What was expected and what was found.
        what: String,
    },
    /// The file was written by a newer foremind. The host needs that one, or an older file.
    NewerFormat {
        /// The newest format known here.
        known: u16,
        /// The format found.
        found: u16,
    },
    /// The file is shorter or longer than its header says: a download was cut, or bytes were appended.
    WrongLength {
        /// Bytes expected.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// Bytes of the file differ from what was packed.
    Altered {
        /// The part whose checksum differs.
        part: &'static str,
        /// BLAKE3 expected, its first 8 bytes in hexadecimal.
        expected: String,
        /// BLAKE3 found, its first 8 bytes in hexadecimal.
        found: String,
    },
    /// The header holds together but says something impossible.
    BadHeader {
        /// What is wrong.
        what: &'static str,
    },
    /// The file lacks a section that this build needs.
    SectionMissing {
        /// The section.
        section: &'static str,
    },
    /// The vocabulary cannot be used.
    BadVocabulary {
        /// What is wrong.
        what: &'static str,
    },
    /// Vocabulary and weights do not belong together.
    VocabularySize {
        /// Rows of the weights' embedding table.
        expected: usize,
        /// Tokens of the vocabulary.
        found: usize,
    },
    /// The weights are no MiniLM sentence encoder that this build can run.
    BadWeights {
        /// What was expected and what was found.
        what: String,
    },
    /// A text to encode is empty or only white space.
    TextEmpty {
        /// Its place among the texts of the call.
        at: usize,
    },
    /// A call has more texts than one call may have.
    TooManyTexts {
        /// The limit.
        expected: usize,
        /// Texts of the call.
        found: usize,
    },
    /// The model has no such head.
    UnknownHead {
        /// The head asked for.
        found: HeadId,
    },
    /// The network failed or gave numbers that are not finite. foremind's fault, or the weights'.
    Inference {
        /// What failed.
        what: String,
    },
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAModelFile { found } => write!(
                f,
                "not a foremind model file: expected it to start with {:02x?}, found {found:02x?}",
                crate::pack::MAGIC
            ),
            Self::NotAnAdapterFile { found } => write!(
                f,
                "not a foremind adapter file: expected it to start with {:02x?}, found {found:02x?}",
                crate::pack::ADAPTER_MAGIC
            ),
            Self::AdapterOfAnotherModel { expected, found } => write!(
                f,
                "the adapter belongs to another model: expected `{}`, found `{}`",
                expected.0.escape_debug(),
                found.0.escape_debug()
            ),
            Self::BadAdapter { what } => write!(f, "the adapter cannot be used: {what}"),
            Self::NewerFormat { known, found } => write!(
                f,
                "the file has format {found}, this build knows formats up to {known}"
            ),
            Self::WrongLength { expected, found } => write!(
                f,
                "the file should have {expected} bytes and has {found}; fetch it again"
            ),
            Self::Altered {
                part,
                expected,
                found,
            } => write!(
                f,
                "the {part} of the file is altered: expected BLAKE3 {expected}.., found {found}..; fetch it again"
            ),
            Self::BadHeader { what } => write!(f, "the file's header is not valid: {what}"),
            Self::SectionMissing { section } => {
                write!(
                    f,
                    "the file has no section `{section}`, which this build needs"
                )
            }
            Self::BadVocabulary { what } => write!(f, "the vocabulary cannot be used: {what}"),
            Self::VocabularySize { expected, found } => write!(
                f,
                "the weights expect a vocabulary of {expected} tokens, the model file has {found}"
            ),
            Self::BadWeights { what } => write!(f, "the weights cannot be used: {what}"),
            Self::TextEmpty { at } => {
                write!(f, "text {at} of the call is empty or only white space")
            }
            Self::TooManyTexts { expected, found } => {
                write!(
                    f,
                    "one call may encode {expected} texts, this one has {found}"
                )
            }
            Self::UnknownHead { found } => write!(
                f,
                "expected a head that the model or a loaded adapter has (`{}` is always there), found `{}`",
                crate::EMBEDDING_HEAD,
                found.0.escape_debug()
            ),
            Self::Inference { what } => write!(f, "the network failed: {what}"),
        }
    }
}

impl core::error::Error for EmbedError {}

impl EmbedError {
    /// The stable code under which the error crosses borders.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NewerFormat { .. } => ErrorCode::NewerFormat,
            Self::NotAModelFile { .. }
            | Self::NotAnAdapterFile { .. }
            | Self::AdapterOfAnotherModel { .. }
            | Self::BadAdapter { .. }
            | Self::WrongLength { .. }
            | Self::Altered { .. }
            | Self::BadHeader { .. }
            | Self::SectionMissing { .. }
            | Self::BadVocabulary { .. }
            | Self::VocabularySize { .. }
            | Self::BadWeights { .. } => ErrorCode::ModelInvalid,
            Self::TextEmpty { .. } => ErrorCode::TextEmpty,
            Self::TooManyTexts { .. } | Self::UnknownHead { .. } => ErrorCode::InvalidArgument,
            Self::Inference { .. } => ErrorCode::Internal,
        }
    }
}

impl From<EmbedError> for Error {
    fn from(error: EmbedError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
