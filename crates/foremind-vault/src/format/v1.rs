//! Format 1, frozen: docs/FORMAT.md describes it and holds the hash of this file. Nothing here changes once
//! a release has written it; a new layout is a new module.

use serde::{Deserialize, Serialize};

/// The number of this format.
pub(crate) const FORMAT: u16 = 1;

// Header of every value. Bytes 0 to 47 keep their place and meaning in every later format.
pub(crate) const MAGIC: [u8; 4] = *b"FMEM";
pub(crate) const FORMAT_AT: usize = MAGIC.len();
pub(crate) const KIND_AT: usize = FORMAT_AT + 2;
pub(crate) const RESERVED_AT: usize = KIND_AT + 1;
pub(crate) const GENERATION_AT: usize = RESERVED_AT + 1;
pub(crate) const COMMIT_AT: usize = GENERATION_AT + 8;
pub(crate) const COMMIT_BYTES: usize = 16;
pub(crate) const HEADER_BYTES: usize = COMMIT_AT + COMMIT_BYTES;
pub(crate) const CHECKSUM_AT: usize = HEADER_BYTES;
pub(crate) const CHECKSUM_BYTES: usize = 16;
pub(crate) const CHECKED_AT: usize = CHECKSUM_AT + CHECKSUM_BYTES;

// Sealed values: head and log.
pub(crate) const NONCE_AT: usize = CHECKED_AT;
pub(crate) const NONCE_BYTES: usize = 24;
pub(crate) const SEALED_AT: usize = NONCE_AT + NONCE_BYTES;
pub(crate) const TAG_BYTES: usize = 16;

// The key slot.
pub(crate) const SLOT_MEMORY_AT: usize = CHECKED_AT;
pub(crate) const SLOT_METHOD_AT: usize = SLOT_MEMORY_AT + 16;
pub(crate) const SLOT_CHECK_AT: usize = SLOT_METHOD_AT + 1;
pub(crate) const SLOT_CHECK_BYTES: usize = 16;
pub(crate) const SLOT_BLOB_AT: usize = SLOT_CHECK_AT + SLOT_CHECK_BYTES;
pub(crate) const SLOT_BLOB_BYTES_MAX: usize = 4096;

pub(crate) const KIND_HEAD: u8 = 1;
pub(crate) const KIND_SLOT: u8 = 2;
pub(crate) const KIND_LOG: u8 = 3;

pub(crate) const METHOD_HOST: u8 = 1;
pub(crate) const METHOD_EXTERNAL: u8 = 2;
pub(crate) const METHOD_PASSPHRASE: u8 = 3;

// The blob of a key slot that a passphrase opens.
pub(crate) const PASS_MEMORY_KIB_AT: usize = 0;
pub(crate) const PASS_PASSES_AT: usize = PASS_MEMORY_KIB_AT + 4;
pub(crate) const PASS_LANES_AT: usize = PASS_PASSES_AT + 4;
pub(crate) const PASS_SALT_AT: usize = PASS_LANES_AT + 4;
pub(crate) const PASS_SALT_BYTES: usize = 16;
pub(crate) const PASS_NONCE_AT: usize = PASS_SALT_AT + PASS_SALT_BYTES;
pub(crate) const PASS_SEALED_AT: usize = PASS_NONCE_AT + NONCE_BYTES;

/// The ordinal of the copy of a head that a store without compare-and-swap keeps.
pub(crate) const JOURNAL_ORDINAL: u32 = u32::MAX - 1;

/// The kind of derived value that holds the visible profile.
pub(crate) const DERIVED_PROFILE: u8 = 1;

// Kinds of keyed changes.
/// Tombstones: 16 bytes for each erased record.
pub(crate) const KEYED_TOMBSTONES: u8 = 1;
/// A receipt: the previous one's hash, its own, and both under the key, 32 bytes each.
pub(crate) const KEYED_RECEIPT: u8 = 2;

// Contexts of BLAKE3 key derivation and domains of associated data.
pub(crate) const CONTEXT_SEAL: &str = "foremind format 1 seal";
pub(crate) const CONTEXT_NAME: &str = "foremind format 1 value name";
pub(crate) const CONTEXT_CHECK: &str = "foremind format 1 data key check";
pub(crate) const CONTEXT_WRAP: &str = "foremind format 1 host key wrap";
pub(crate) const CONTEXT_PASS: &str = "foremind format 1 passphrase wrap";
pub(crate) const CONTEXT_RECEIPT: &str = "foremind format 1 receipt";
pub(crate) const DOMAIN_VALUE: &[u8; 8] = b"fm1value";
pub(crate) const DOMAIN_SLOT: &[u8; 8] = b"fm1keysl";

/// Most bytes of plaintext in one value; a longer run is cut into chunks of this size.
pub(crate) const CHUNK_BYTES: usize = 1_044_480 - SEALED_AT - TAG_BYTES;

/// Plaintext of the head.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) last_sequence: u64,
    pub(crate) runs: Vec<Run>,
    pub(crate) derived: Vec<Derived>,
    pub(crate) garbage: Vec<Place>,
}

/// Where a stretch of the log is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) level: u8,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) place: Place,
}

/// Which values hold a plaintext.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) generation: u64,
    pub(crate) commit: [u8; COMMIT_BYTES],
    pub(crate) ordinal: u32,
    pub(crate) chunks: u32,
    pub(crate) bytes: u64,
}

/// Where something that can be made again from the log is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Derived {
    pub(crate) kind: u8,
    pub(crate) at_sequence: u64,
    pub(crate) place: Place,
}

/// Plaintext of a run. `u32` fields that name a string are positions in `strings`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entries {
    pub(crate) strings: Vec<String>,
    pub(crate) entries: Vec<Entry>,
}

/// Plaintext of the profile value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) strings: Vec<String>,
    pub(crate) records: Vec<Heard>,
}

/// A record of the profile tier, and when it was last told or confirmed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Heard {
    pub(crate) record: Record,
    pub(crate) heard_ms: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) writer: u64,
    pub(crate) counter: u64,
    pub(crate) lamport: u64,
    pub(crate) at_ms: i64,
    pub(crate) changes: Vec<Change>,
}

pub(crate) type Id = [u8; 16];

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    Add(Box<Record>),
    Status {
        id: Id,
        status: u8,
        valid_to_ms: Option<i64>,
    },
    Route {
        id: Id,
        route: Route,
    },
    Confirmed {
        id: Id,
        at_ms: i64,
    },
    Told {
        id: Id,
        at_ms: i64,
        proof_count: u32,
    },
    Embed {
        id: Id,
        model_id: u32,
        head_id: u32,
        scale: f32,
        vector: Vec<i8>,
        features: Vec<f32>,
    },
    Turn {
        scope: Scope,
        thread: u32,
        turn: u32,
        records: Vec<Id>,
    },
    Erase {
        id: Id,
        at_ms: i64,
    },
    Keyed {
        kind: u8,
        bytes: Vec<u8>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) user: u32,
    pub(crate) project: Option<u32>,
    pub(crate) thread: Option<u32>,
    pub(crate) agent: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: Id,
    pub(crate) scope: Scope,
    pub(crate) text: String,
    pub(crate) layer: u8,
    pub(crate) route: Route,
    pub(crate) subject: u8,
    pub(crate) attribute: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) told_ms: i64,
    pub(crate) utc_offset_min: i16,
    pub(crate) valid_from_ms: Option<i64>,
    pub(crate) valid_to_ms: Option<i64>,
    pub(crate) status: u8,
    pub(crate) supersedes: Vec<Supersedes>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) role: u8,
    pub(crate) thread: Option<u32>,
    pub(crate) turn: Option<u32>,
    pub(crate) statement: u16,
    pub(crate) confirmed_ms: Option<i64>,
    pub(crate) proof_count: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Supersedes {
    pub(crate) id: Id,
    pub(crate) kind: u8,
    pub(crate) why: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) id: Id,
    pub(crate) quote: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Route {
    pub(crate) grade: u8,
    pub(crate) tier: u8,
    pub(crate) priority: f32,
    pub(crate) severity: u8,
    pub(crate) domain: u8,
    pub(crate) affects: Vec<u8>,
    pub(crate) ttl: Ttl,
    pub(crate) score: f32,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) stage: u8,
    pub(crate) judgement: u8,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ttl {
    Permanent,
    UntilChanged,
    Dated { until_ms: i64 },
    Session { until_ms: i64 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reason {
    pub(crate) signal: u32,
    pub(crate) matched: String,
    pub(crate) weight: f32,
}

/// A word of the vocabulary as one stored byte.
pub(crate) trait Code: Copy {
    fn code(self) -> u8;
    fn from_code(code: u8) -> Option<Self>;
}

macro_rules! codes {
    ($($name:ident { $($code:literal $variant:ident)+ })+) => {$(
        impl Code for foremind_types::$name {
            fn code(self) -> u8 {
                match self { $(Self::$variant => $code,)+ }
            }

            fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }
    )+};
}

codes! {
    Grade { 1 Modifier 2 Circumstance 3 Informer }
    Tier { 1 Profile 2 Store }
    Layer { 1 Episode 2 Fact 3 Belief 4 Procedure 5 Answer }
    Status { 1 Current 2 Superseded 3 Retracted 4 Expired 5 Quarantined 6 Erased }
    Subject { 1 Owner 2 Dependant 3 Other 4 None }
    Severity { 1 Mild 2 Moderate 3 Severe }
    Stage { 1 Lexical 2 Semantic 3 Judge 4 Owner }
    Judgement { 1 Settled 2 Pending 3 Unrouted }
    Role { 1 User 2 Assistant 3 Tool }
    SupersedeKind { 1 Changed 2 Corrected 3 Merged 4 Ended 5 Excepted 6 Conflict 7 Beside }
    Domain {
        1 Allergy 2 Medication 3 Condition 4 Procedure 5 Pregnancy 6 Disability 7 MentalHealth 8 Diet
        9 Food 10 Fitness 11 Religion 12 Culture 13 Immigration 14 Legal 15 Policy 16 Finance 17 Job
        18 Licence 19 Home 20 Location 21 Pets 22 Dependant 23 Devices 24 Safety 25 Goal 26 Instruction
        27 Session 28 People 29 Travel 30 Study 31 Appearance 32 Hobby 33 General
    }
}
