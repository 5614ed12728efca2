//! Steps and replies as they cross: one tagged object each, its `kind` in kebab-case. `border` takes the tag of a reply off.

use foremind_memory::{
    DataKey, HeadToken, Key, KeySource, OpenOptions, OpenReply, OpenStep, Passphrase, Policy,
    Reply, Response, Step, Survey,
};
use foremind_types::vocabulary;
use foremind_types::{Embedding, EncodeFailure, Error, ErrorCode, Fault, HeadId, Receipt};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use zeroize::Zeroize;

/// How a memory is opened.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CoreOptions {
    wrap: Wrap,
    #[serde(default)]
    key: Option<ByteBuf>,
    #[serde(default)]
    passphrase: Option<String>,
    create: bool,
    #[serde(default)]
    profile_first: bool,
    #[serde(default)]
    atomic_batches: bool,
    /// At most 2^53: JavaScript's numbers.
    #[serde(default)]
    min_generation: u64,
    /// Lines of a guard policy.
    #[serde(default)]
    policy: Option<String>,
}

/// How a memory is looked through.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SurveyOptions {
    wrap: Wrap,
    #[serde(default)]
    key: Option<ByteBuf>,
    #[serde(default)]
    passphrase: Option<String>,
    repair: bool,
    /// Of a memory that is no more.
    #[serde(default)]
    receipt: Option<Box<Receipt>>,
}

vocabulary! {
    /// What wraps the data key.
    pub(crate) enum Wrap {
        Host = "host",
        External = "external",
        Passphrase = "passphrase",
    }
}

/// The source of a key; what crossed is zeroed.
pub(crate) fn source(
    wrap: Wrap,
    key: Option<ByteBuf>,
    passphrase: Option<String>,
) -> Result<KeySource, Error> {
    match (wrap, key, passphrase) {
        (Wrap::Host, Some(key), None) => Ok(KeySource::Host(data_key(key)?)),
        (Wrap::External, None, None) => Ok(KeySource::External),
        (Wrap::Passphrase, None, Some(words)) => Ok(KeySource::Passphrase {
            passphrase: passphrase_of(words)?,
            cost: None,
        }),
        (Wrap::Host, None, _) => Err(Error::new(
            ErrorCode::KeyMissing,
            "the host's key was not passed",
        )),
        (Wrap::Passphrase, _, None) => Err(Error::new(
            ErrorCode::KeyMissing,
            "the passphrase was not passed",
        )),
        _ => Err(Error::new(
            ErrorCode::InvalidArgument,
            "a key or a passphrase is passed only where it wraps",
        )),
    }
}

pub(crate) fn passphrase_of(words: String) -> Result<Passphrase, Error> {
    Passphrase::new(words.into_bytes()).map_err(Error::from)
}

impl SurveyOptions {
    pub(crate) fn into_survey(self) -> Result<Survey, Error> {
        let source = source(self.wrap, self.key, self.passphrase)?;
        let options = OpenOptions::new(source);
        Ok(match self.receipt {
            Some(receipt) => Survey::of_receipt(options, receipt),
            None => Survey::new(options, self.repair),
        })
    }
}

impl CoreOptions {
    pub(crate) fn into_open(self) -> Result<OpenOptions, Error> {
        let source = source(self.wrap, self.key, self.passphrase)?;
        let mut options = OpenOptions::new(source);
        options.create = self.create;
        options.profile_first = self.profile_first;
        options.min_generation = self.min_generation;
        options.atomic_batches = self.atomic_batches;
        if let Some(policy) = self.policy {
            options.policy = Policy::parse(&policy)?;
        }
        Ok(options)
    }
}

/// A key of 32 bytes; the copy that crossed is zeroed.
pub(crate) fn data_key(mut bytes: ByteBuf) -> Result<DataKey, Error> {
    let key = <[u8; 32]>::try_from(bytes.as_slice()).map(DataKey::new);
    bytes.zeroize();
    key.map_err(|_| Error::new(ErrorCode::InvalidArgument, "a key must be 32 bytes"))
}

/// What an opening needs.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub(crate) enum OpenStepOut {
    Read {
        keys: Vec<String>,
    },
    NeedKey {
        wrapped: ByteBuf,
    },
    WrapKey {
        data_key: ByteBuf,
    },
    Commit {
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_head: Option<ByteBuf>,
        puts: Vec<(String, ByteBuf)>,
        deletes: Vec<String>,
        strict: bool,
    },
    Names {},
    Profile {},
    Opened {},
    Failed {
        error: Error,
    },
}

impl From<OpenStep> for OpenStepOut {
    fn from(step: OpenStep) -> Self {
        match step {
            OpenStep::NeedRead { keys } => Self::Read { keys: names(&keys) },
            OpenStep::NeedKey { wrapped, .. } => Self::NeedKey {
                wrapped: ByteBuf::from(wrapped),
            },
            OpenStep::WrapKey { data_key } => Self::WrapKey {
                data_key: ByteBuf::from(data_key.as_bytes().to_vec()),
            },
            OpenStep::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => Self::Commit {
                expected_head: token(expected_head),
                puts: values(puts),
                deletes: names(&deletes),
                strict,
            },
            OpenStep::NeedNames => Self::Names {},
            OpenStep::Profile => Self::Profile {},
            OpenStep::Done(Ok(_)) => Self::Opened {},
            OpenStep::Done(Err(error)) => Self::Failed { error },
        }
    }
}

impl Drop for OpenStepOut {
    fn drop(&mut self) {
        if let Self::WrapKey { data_key } = self {
            data_key.zeroize();
        }
    }
}

/// What an operation needs.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one call, between the core and the serialiser"
)]
pub(crate) enum StepOut {
    Embed {
        texts: Vec<String>,
        heads: Vec<HeadId>,
    },
    Read {
        keys: Vec<String>,
    },
    Names {},
    Commit {
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_head: Option<ByteBuf>,
        puts: Vec<(String, ByteBuf)>,
        deletes: Vec<String>,
        strict: bool,
    },
    Done {
        response: Response,
    },
    Failed {
        error: Error,
    },
}

impl From<Step> for StepOut {
    fn from(step: Step) -> Self {
        match step {
            Step::NeedEmbed { texts, heads } => Self::Embed { texts, heads },
            Step::NeedRead { keys } => Self::Read { keys: names(&keys) },
            Step::NeedNames => Self::Names {},
            Step::Commit {
                expected_head,
                puts,
                deletes,
                strict,
            } => Self::Commit {
                expected_head: token(expected_head),
                puts: values(puts),
                deletes: names(&deletes),
                strict,
            },
            Step::Done(Ok(response)) => Self::Done { response },
            Step::Done(Err(error)) => Self::Failed { error },
        }
    }
}

/// What the driver answers to an opening.
#[derive(Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum OpenReplyIn {
    Begin {},
    Values { values: Vec<Option<ByteBuf>> },
    Key { key: ByteBuf },
    Wrapped { wrapped: ByteBuf },
    Continue {},
    Committed {},
    Conflict {},
    Failed { error: Error },
}

impl OpenReplyIn {
    pub(crate) fn into_reply(self) -> Result<OpenReply, Error> {
        Ok(match self {
            Self::Begin {} => OpenReply::Begin,
            Self::Values { values } => OpenReply::Values(stored(values)),
            Self::Key { key } => OpenReply::DataKey(data_key(key)?),
            Self::Wrapped { wrapped } => OpenReply::Wrapped(wrapped.into_vec()),
            Self::Continue {} => OpenReply::Continue,
            Self::Committed {} => OpenReply::Committed,
            Self::Conflict {} => OpenReply::Conflict,
            Self::Failed { error } => OpenReply::Failed(error),
        })
    }
}

/// What the driver answers to an operation.
#[derive(Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum ReplyIn {
    Begin {},
    Embedded {
        embeddings: Vec<Vec<Embedding>>,
    },
    NotEmbedded {
        failure: EncodeFailure,
    },
    Values {
        values: Vec<Option<ByteBuf>>,
    },
    Names {
        #[serde(default)]
        names: Option<Vec<String>>,
    },
    Committed {},
    Conflict {},
    Failed {
        error: Error,
    },
}

impl From<ReplyIn> for Reply {
    fn from(reply: ReplyIn) -> Self {
        match reply {
            ReplyIn::Begin {} => Self::Begin,
            ReplyIn::Embedded { embeddings } => Self::Embedded(Ok(embeddings)),
            ReplyIn::NotEmbedded { failure } => Self::Embedded(Err(failure)),
            ReplyIn::Values { values } => Self::Values(stored(values)),
            ReplyIn::Names { names } => Self::Names(names),
            ReplyIn::Committed {} => Self::Committed,
            ReplyIn::Conflict {} => Self::Conflict,
            ReplyIn::Failed { error } => Self::Failed(error),
        }
    }
}

/// One error of the list that the package checks its own against.
#[derive(Serialize)]
pub(crate) struct ErrorRow {
    code: ErrorCode,
    fault: Fault,
}

impl ErrorRow {
    pub(crate) fn new(code: ErrorCode) -> Self {
        Self {
            code,
            fault: code.fault(),
        }
    }
}

pub(crate) fn names(keys: &[Key]) -> Vec<String> {
    keys.iter().map(|key| key.as_str().to_owned()).collect()
}

pub(crate) fn token(head: Option<HeadToken>) -> Option<ByteBuf> {
    head.map(|token| ByteBuf::from(token.0.to_vec()))
}

pub(crate) fn values(puts: Vec<(Key, Vec<u8>)>) -> Vec<(String, ByteBuf)> {
    puts.into_iter()
        .map(|(key, value)| (key.as_str().to_owned(), ByteBuf::from(value)))
        .collect()
}

pub(crate) fn stored(values: Vec<Option<ByteBuf>>) -> Vec<Option<Vec<u8>>> {
    values
        .into_iter()
        .map(|value| value.map(ByteBuf::into_vec))
        .collect()
}
