use foremind_types::vocabulary;
use foremind_types::{Domain, ErasedCounts, Receipt, Record, RecordId};
use serde::{Deserialize, Serialize};

use crate::veil::Pseudonym;

/// The result of a [`crate::Request`]; `kind` is the verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Response {
    /// See [`crate::Request::Remember`].
    Remember {
        /// One for each statement, in order.
        records: Vec<Noted>,
    },
    /// See [`crate::Request::Ingest`].
    Ingest {
        /// One for each statement that was kept, in order. Of a repeated turn: what is left of them.
        records: Vec<Noted>,
        /// Whether the turn was ingested before.
        repeated: bool,
        /// Why nothing was taken, if the turn was not looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ignored: Option<Ignored>,
    },
    /// See [`crate::Request::Recall`].
    Recall(Prompt),
    /// See [`crate::Request::Profile`].
    Profile(Prompt),
    /// See [`crate::Request::Get`].
    Get {
        /// The record.
        record: Record,
    },
    /// See [`crate::Request::List`].
    List(Listing),
    /// See [`crate::Request::History`].
    History {
        /// The chain, earliest first.
        records: Vec<Chain>,
    },
    /// See [`crate::Request::Update`].
    Update {
        /// As it is now.
        record: Record,
    },
    /// See [`crate::Request::Confirm`].
    Confirm {
        /// As it is now.
        record: Record,
    },
    /// See [`crate::Request::Forget`].
    Forget {
        /// How many records were erased.
        erased: u32,
        /// What was taken out.
        #[serde(default)]
        counts: ErasedCounts,
        /// What would be erased; nothing was.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        preview: Vec<Record>,
        /// The proof, once something was erased.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receipt: Option<Box<Receipt>>,
    },
    /// See [`crate::Request::Pending`].
    Pending(PendingList),
    /// See [`crate::Request::Judge`].
    Judge {
        /// As it is now.
        record: Record,
    },
    /// See [`crate::Request::Stats`].
    Stats(Stats),
    /// See [`crate::Request::Backfill`].
    Backfill {
        /// How many records got a vector.
        encoded: u32,
        /// How many still have none.
        remaining: u32,
    },
    /// See [`crate::Request::Rescan`].
    Rescan(Rescanned),
    /// See [`crate::Request::Refresh`].
    Refresh {},
}

/// What a rescan came upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rescanned {
    /// Records that were looked at.
    pub looked: u32,
    /// Those that were written anew without what may not be stored; the old ones are erased.
    pub redacted: u32,
    /// Those that are quarantined now and were not before.
    pub quarantined: u32,
    /// Where to go on; absent when all was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<RecordId>,
}

/// What became of one statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    /// The record that holds it now.
    pub record: Record,
    /// Whether it is new.
    pub outcome: Outcome,
}

vocabulary! {
    /// How a statement came into its record.
    pub enum Outcome {
        /// As a new record.
        Added = "added",
        /// The same words were known; their proof count rose.
        Merged = "merged",
        /// The turn had been ingested before.
        Repeated = "repeated",
        /// As a new record that may contradict another; both stay current.
        Conflict = "conflict",
        /// As a new record that holds from a date to come.
        Planned = "planned",
        /// As a new record that ends an earlier one.
        Ended = "ended",
        /// As a new record in the place of an earlier one.
        Superseded = "superseded",
        /// As a new record that retracts an earlier one.
        Corrected = "corrected",
    }
}

vocabulary! {
    /// Why a turn was not looked at.
    pub enum Ignored {
        /// The memory is off for this turn, or the conversation is private.
        Mode = "mode",
        /// The turn failed.
        Status = "status",
        /// Not the owner's turn, and not marked as a finding.
        Role = "role",
    }
}

/// A rendered prompt and what it is made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The text for the model; empty when there is nothing to show.
    pub prompt: String,
    /// Estimated tokens of `prompt`, never more than `budget_tokens`.
    pub tokens: u32,
    /// The budget that was asked for.
    pub budget_tokens: u32,
    /// The profile section, in order.
    pub profile: Vec<Shown>,
    /// What else bears on the question though it does not look like it, closest first.
    #[serde(default)]
    pub joined: Vec<Shown>,
    /// The context section, best first.
    pub context: Vec<Shown>,
    /// What the placeholders in it stand for: not for the one who reads the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pseudonyms: Vec<Pseudonym>,
    /// What would have been shown with more room.
    pub dropped: Vec<Dropped>,
    /// Whether the search went by words only, since the query or the records have no vectors.
    pub lexical_only: bool,
    /// Whether the work allowed for the search did not last for all records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// Domains that the query asks about, strongest first; empty when uncertain.
    pub domains: Vec<Domain>,
    /// Until when the profile section stays the same without a write, Unix milliseconds; absent: for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_until_ms: Option<i64>,
}

/// A record in the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The record.
    pub record: Record,
    /// Its line, without the line break.
    pub line: String,
    /// Estimated tokens of the line, its line break included.
    pub tokens: u32,
    /// Why it stands here: names of the router's signals in the profile, and what of the question the fact affects
    /// ("affects: home (marble -> acids, "vinegar"; source)"); in the context `words`, `meaning`, `conversation` (told just after
    /// one that was found), `name` (shares one with the best) or `time`, and nothing for what belongs to the item before.
    pub why: Vec<String>,
    /// How the search ranked it, if that was asked for and it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Explain>,
}

/// What the search made of a record. The parts of the score are shares of the best possible, each as far as it was added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explain {
    /// Place among all that was found, from 1; items of the profile have one as well.
    pub rank: u32,
    /// Sum of all parts.
    pub score: f32,
    /// Share of the query's informative words that the record has, 0 to 1.
    pub words: f32,
    /// Cosine of query and record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f32>,
    /// What the records told just before it add.
    pub conversation: f32,
    /// What a name adds that one of the best has as well.
    pub names: f32,
    /// What it adds to be told in the time that the query names.
    pub time: f32,
    /// What its age adds.
    pub recency: f32,
    /// What its domain adds, when the query asks about it.
    pub domain: f32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

vocabulary! {
    /// A part of the prompt.
    pub enum Section {
        /// What modifies answers.
        Profile = "profile",
        /// What the question bears on.
        Joined = "joined",
        /// What was retrieved for the query.
        Context = "context",
    }
}

/// A record that found no room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The record.
    pub id: RecordId,
    /// Where it would have stood.
    pub section: Section,
    /// What its line would have cost.
    pub tokens: u32,
    /// What it lacked.
    pub reason: DroppedReason,
}

vocabulary! {
    /// What a record lacked to be shown.
    pub enum DroppedReason {
        /// Tokens.
        Tokens = "tokens",
        /// A place among the section's items.
        Items = "items",
        /// A place among the items of its domain.
        Domain = "domain",
    }
}

/// A page of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// By id, so earliest told first.
    pub records: Vec<Record>,
    /// Pass it as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RecordId>,
}

/// A record in a chain of replacements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    /// The record.
    pub record: Record,
    /// What replaced it.
    pub superseded_by: Vec<RecordId>,
}

/// Records that wait for a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingList {
    /// Latest told first, at most [`foremind_types::limits::PENDING_JUDGEMENTS`].
    pub records: Vec<Record>,
    /// How many wait, those outside of the list included.
    pub waiting: u32,
}

/// Counts inside a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Records of any status, erased ones left out.
    pub records: u32,
    /// Current records.
    pub current: u32,
    /// Current records of the profile tier.
    pub profile: u32,
    /// Current records of the store tier.
    pub store: u32,
    /// Current records that wait for a judgement.
    pub pending: u32,
    /// Current records that the semantic stage has not seen.
    pub unrouted: u32,
    /// Current records without a vector.
    pub without_vector: u32,
    /// Bytes of all their texts.
    pub text_bytes: u64,
}
