use foremind_types::vocabulary;
use foremind_types::{Domain, Grade, ModelId, Name, RecordId, Role, Scope, Status, Tier};
use serde::{Deserialize, Serialize};

/// A verb with its arguments, as it crosses borders: `{"get": {"scope": …, "id": …}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum Request {
    /// Stores a text as one record; a text longer than a statement may be becomes several.
    Remember {
        /// Whose and where.
        scope: Scope,
        /// What to keep.
        text: String,
        /// Who said it.
        #[serde(default = "owner")]
        role: Role,
        /// The conversation it was said in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<Name>,
        /// The turn it was said in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Name>,
        /// Where the owner wants it; absent: the router decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    /// Takes what is worth keeping from a turn. Repeating (scope, thread, turn) returns the first result.
    Ingest {
        /// Whose and where.
        scope: Scope,
        /// The conversation.
        thread: Name,
        /// The turn in it.
        turn: Name,
        /// Who speaks.
        role: Role,
        /// The whole turn.
        text: String,
        /// How the turn ended.
        #[serde(default)]
        status: TurnStatus,
        /// Whether the memory listens.
        #[serde(default)]
        mode: IngestMode,
        /// Marks the model's or a tool's own finding as worth keeping; without it their turns are ignored.
        #[serde(default)]
        finding: bool,
    },
    /// The prompt for a query.
    Recall {
        /// Who asks, from where.
        scope: Scope,
        /// The question; what is beyond [`foremind_types::limits::QUERY_BYTES`] is ignored.
        query: String,
        /// Hard limit of the whole prompt.
        #[serde(default = "default_budget")]
        budget_tokens: u32,
        /// For this time of the past instead of now, Unix milliseconds: what had been told and held then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of_ms: Option<i64>,
        /// How much of the profile is shown.
        #[serde(default)]
        exposure: Exposure,
        /// Who reads it.
        #[serde(default)]
        audience: Audience,
        /// Milliseconds that the search may take, by a rate of work; what is left undone then is said by
        /// [`crate::Prompt::partial`]. Absent: all is looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline_ms: Option<u32>,
        /// Whether each item tells how it was found.
        #[serde(default, skip_serializing_if = "is_false")]
        explain: bool,
    },
    /// The visible profile alone.
    Profile {
        /// Who asks, from where.
        scope: Scope,
        /// Hard limit of the whole prompt.
        #[serde(default = "default_budget")]
        budget_tokens: u32,
        /// See [`Request::Recall`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_of_ms: Option<i64>,
        /// See [`Request::Recall`].
        #[serde(default)]
        audience: Audience,
    },
    /// One record.
    Get {
        /// Who asks, from where.
        scope: Scope,
        /// Which.
        id: RecordId,
    },
    /// The records inside a scope, by id.
    List {
        /// The scope whose inside is listed.
        scope: Scope,
        /// Of this tier only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// Of this status only; absent: every status but erased.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<Status>,
        /// Of this domain only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        domain: Option<Domain>,
        /// At most so many, 1 to 1,000.
        #[serde(default = "default_limit")]
        limit: u32,
        /// Those after this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<RecordId>,
    },
    /// What a record replaced and what replaced it.
    History {
        /// Who asks, from where.
        scope: Scope,
        /// Any record of the chain.
        id: RecordId,
    },
    /// The owner's correction of a verdict; nothing overrules it.
    Update {
        /// A scope that contains the record.
        scope: Scope,
        /// Which.
        id: RecordId,
        /// Where it belongs.
        tier: Tier,
    },
    /// The owner says that a record still holds.
    Confirm {
        /// A scope that contains the record.
        scope: Scope,
        /// Which.
        id: RecordId,
    },
    /// The owner's word that a quarantined record is no instruction: it is current from now on.
    Release {
        /// A scope that contains the record.
        scope: Scope,
        /// Which.
        id: RecordId,
    },
    /// Looks at what is stored with the guard's patterns of now: redacts, and quarantines. A number of records at a time, by id.
    Rescan {
        /// The scope whose inside is looked at.
        scope: Scope,
        /// Only what comes after it: [`crate::Rescanned::next`] of the answer before.
        #[serde(default)]
        after: Option<RecordId>,
    },
    /// Erases records for good.
    Forget {
        /// A scope that contains them.
        scope: Scope,
        /// Which.
        target: ForgetTarget,
        /// Only says what would be erased. Absent: for a query, nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<bool>,
    },
    /// The records that wait for a judgement.
    Pending {
        /// The scope whose inside is listed.
        scope: Scope,
    },
    /// The verdict of a host's own model on a record that waits for one.
    Judge {
        /// A scope that contains the record.
        scope: Scope,
        /// Which.
        id: RecordId,
        /// The verdict.
        grade: Grade,
    },
    /// Counts.
    Stats {
        /// The scope whose inside is counted.
        scope: Scope,
    },
    /// Encodes records that have no vector yet.
    Backfill {
        /// At most so many, 1 to 256; absent: 8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
        /// The embedder's model: records whose vector is another model's are encoded again, and lose that one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelId>,
    },
    /// Takes over what other writers stored; the work is done before the engine is asked.
    Refresh {},
}

/// What to forget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ForgetTarget {
    /// One record.
    Id(RecordId),
    /// Everything told in a conversation.
    Thread(Name),
    /// What has at least half of the words that say something in this text.
    Query(String),
    /// What names this person or thing: all of its words, side by side.
    Subject(String),
    /// Everything inside the scope.
    Scope,
}

vocabulary! {
    /// How much of the profile a prompt shows.
    #[derive(Default)]
    pub enum Exposure {
        /// The visible profile, and what else bears on the question.
        #[default]
        Full = "full",
        /// Only what may matter to the question: what bears on it, severe modifiers, and all when it is uncertain what the
        /// question is about.
        Minimal = "minimal",
    }
}

vocabulary! {
    /// Who reads a prompt.
    #[derive(Default)]
    pub enum Audience {
        /// A model elsewhere: constraints as what to avoid, placeholders for names, addresses and numbers.
        #[default]
        Remote = "remote",
        /// A model on this device: facts as they were told.
        Device = "device",
    }
}

vocabulary! {
    /// How a turn ended.
    #[derive(Default)]
    pub enum TurnStatus {
        /// As intended.
        #[default]
        Ok = "ok",
        /// With an error: nothing is taken from it.
        Failed = "failed",
    }
}

vocabulary! {
    /// Whether the memory listens to a turn.
    #[derive(Default)]
    pub enum IngestMode {
        /// It does.
        #[default]
        On = "on",
        /// The owner switched it off: nothing is stored.
        Off = "off",
        /// The conversation is private: nothing is stored.
        Incognito = "incognito",
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn owner() -> Role {
    Role::User
}

fn default_budget() -> u32 {
    512
}

fn default_limit() -> u32 {
    100
}
