use serde::{Deserialize, Serialize};

use crate::{Name, RecordId, Scope, vocabulary};

vocabulary! {
    /// What a statement does to answers.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Grade {
        /// Changes what a correct answer is: allergy, medicine, legal bar.
        Modifier = "modifier",
        /// A lasting fact of the owner's life that can change some answer: marble worktops, a client abroad.
        Circumstance = "circumstance",
        /// Informs an answer when it is asked about.
        Informer = "informer",
    }
}

vocabulary! {
    /// Where a record lives.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Tier {
        /// Modifiers and circumstances: always in the prompt as far as the budget lasts.
        Profile = "profile",
        /// Informers: retrieved on demand.
        Store = "store",
    }
}

vocabulary! {
    /// What kind of knowledge a record is.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Layer {
        /// What happened.
        Episode = "episode",
        /// A statement with subject, attribute and value, and time.
        Fact = "fact",
        /// Consolidated from facts, with quotes and a proof count.
        Belief = "belief",
        /// An accepted lesson.
        Procedure = "procedure",
        /// A standing answer, read without retrieval.
        Answer = "answer",
    }
}

vocabulary! {
    /// Where a record is in its life. `Erased` is a tombstone without content and is final.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Status {
        /// True as far as the memory knows.
        Current = "current",
        /// Was true until something newer replaced it.
        Superseded = "superseded",
        /// Was never true: corrected.
        Retracted = "retracted",
        /// Its time ran out.
        Expired = "expired",
        /// Kept for review, never rendered.
        Quarantined = "quarantined",
        /// A tombstone: no content, final.
        Erased = "erased",
    }
}

vocabulary! {
    /// Whom a statement is about.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Subject {
        /// The owner.
        Owner = "owner",
        /// A person or animal in the owner's care: counts as the owner's.
        Dependant = "dependant",
        /// Somebody else.
        Other = "other",
        /// Nobody in particular.
        None = "none",
    }
}

vocabulary! {
    /// How bad a wrong answer would be.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Severity {
        /// An inconvenience.
        Mild = "mild",
        /// Costs money, time or comfort.
        Moderate = "moderate",
        /// Endangers health, safety or legal standing; never hidden.
        Severe = "severe",
    }
}

vocabulary! {
    /// Which stage of the router decided.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Stage {
        /// Signals and weights.
        Lexical = "lexical",
        /// The trained head on the embedder.
        Semantic = "semantic",
        /// A host's own model.
        Judge = "judge",
        /// The owner, by `update`; nothing overrules it.
        Owner = "owner",
    }
}

vocabulary! {
    /// Whether a route still waits for somebody.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Judgement {
        /// Decided.
        Settled = "settled",
        /// In doubt: visible in the profile, and offered to a host's judge.
        Pending = "pending",
        /// Below the lexical threshold while no embedder was loaded: to be routed when one is.
        Unrouted = "unrouted",
    }
}

vocabulary! {
    /// Who said it.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Role {
        /// The owner.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool or a document.
        Tool = "tool",
    }
}

vocabulary! {
    /// What a statement is about, and what a question asks about: one list for both sides of the join.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "kebab-case"))]
    pub enum Domain {
        /// Allergies and intolerances.
        Allergy = "allergy",
        /// Medicines taken.
        Medication = "medication",
        /// Diseases and conditions.
        Condition = "condition",
        /// Operations and treatments, past or planned.
        Procedure = "procedure",
        /// Pregnancy and nursing.
        Pregnancy = "pregnancy",
        /// Disability and accessibility.
        Disability = "disability",
        /// Mental health.
        MentalHealth = "mental-health",
        /// What is eaten and not eaten.
        Diet = "diet",
        /// Food and cooking.
        Food = "food",
        /// Sport and exercise.
        Fitness = "fitness",
        /// Religion and its rules.
        Religion = "religion",
        /// Culture and etiquette.
        Culture = "culture",
        /// Visas, residence and citizenship.
        Immigration = "immigration",
        /// Law, contracts and courts.
        Legal = "legal",
        /// Rules of an employer, school or institution.
        Policy = "policy",
        /// Money, tax and insurance.
        Finance = "finance",
        /// Work and its hazards.
        Job = "job",
        /// Licences and permits.
        Licence = "licence",
        /// Home, building and household.
        Home = "home",
        /// Place, climate and altitude.
        Location = "location",
        /// Animals in the owner's care.
        Pets = "pets",
        /// People in the owner's care.
        Dependant = "dependant",
        /// Devices, software and platforms.
        Devices = "devices",
        /// Safety, violence and abuse.
        Safety = "safety",
        /// Long-term goals.
        Goal = "goal",
        /// How the owner wants to be answered.
        Instruction = "instruction",
        /// A state of now: driving, a broken arm this week.
        Session = "session",
        /// Relationships and people.
        People = "people",
        /// Travel.
        Travel = "travel",
        /// Study and education.
        Study = "study",
        /// Clothes and beauty.
        Appearance = "appearance",
        /// Hobbies and media.
        Hobby = "hobby",
        /// Anything else.
        General = "general",
    }
}

impl Domain {
    /// Whether the lexical threshold of health and food (0.4) applies, rather than 0.6.
    #[must_use]
    pub fn is_health_or_food(self) -> bool {
        matches!(
            self,
            Self::Allergy
                | Self::Medication
                | Self::Condition
                | Self::Procedure
                | Self::Pregnancy
                | Self::Disability
                | Self::MentalHealth
                | Self::Diet
                | Self::Food
                | Self::Fitness
        )
    }
}

/// How long a record counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "TtlFields",
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Ttl {
    /// Only an explicit contradiction or `forget` ends it.
    Permanent,
    /// Until something newer replaces it.
    UntilChanged,
    /// Until a date.
    Dated {
        /// Unix milliseconds from which it no longer counts.
        until_ms: i64,
    },
    /// For hours, not days.
    Session {
        /// Unix milliseconds from which it no longer counts.
        until_ms: i64,
    },
}

/// The fields of a [`Ttl`]. It is read from these, since serde's reading of a tagged enum compiles to many times as much.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TtlFields {
    kind: TtlKind,
    until_ms: Option<i64>,
}

vocabulary! {
    /// What tells the kinds of a [`Ttl`] apart.
    enum TtlKind {
        Permanent = "permanent",
        UntilChanged = "until-changed",
        Dated = "dated",
        Session = "session",
    }
}

impl TryFrom<TtlFields> for Ttl {
    type Error = &'static str;

    fn try_from(fields: TtlFields) -> Result<Self, Self::Error> {
        match (fields.kind, fields.until_ms) {
            (TtlKind::Permanent, None) => Ok(Self::Permanent),
            (TtlKind::UntilChanged, None) => Ok(Self::UntilChanged),
            (TtlKind::Dated, Some(until_ms)) => Ok(Self::Dated { until_ms }),
            (TtlKind::Session, Some(until_ms)) => Ok(Self::Session { until_ms }),
            (TtlKind::Permanent | TtlKind::UntilChanged, Some(_)) => {
                Err("untilMs where nothing ends")
            }
            (TtlKind::Dated | TtlKind::Session, None) => Err("untilMs is missing"),
        }
    }
}

impl Ttl {
    /// When it ends, in Unix milliseconds, if it does by itself.
    #[must_use]
    pub fn until_ms(self) -> Option<i64> {
        match self {
            Self::Permanent | Self::UntilChanged => None,
            Self::Dated { until_ms } | Self::Session { until_ms } => Some(until_ms),
        }
    }
}

/// One signal that fired, or one trap that held a signal back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// Which rule: a stable kebab-case name such as `dietary-word` or `trap-hypothetical`.
    pub signal: String,
    /// The words that matched, as they stand in the statement; may be empty.
    pub matched: String,
    /// Weight added (0 to 1), or 0 for a trap.
    pub weight: f32,
}

/// The router's verdict on one statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// What it does to answers.
    pub grade: Grade,
    /// Where it lives.
    pub tier: Tier,
    /// Rank among circumstances, 0 to 1, quantised to 1e-4.
    pub priority: f32,
    /// How bad a wrong answer would be.
    pub severity: Severity,
    /// What it is about.
    pub domain: Domain,
    /// Domains of question whose answer it may change.
    pub affects: Vec<Domain>,
    /// How long it counts.
    pub ttl: Ttl,
    /// Score of the deciding stage, 0 to 1, quantised to 1e-4.
    pub score: f32,
    /// Every signal that fired, strongest first.
    pub reasons: Vec<Reason>,
    /// Who decided.
    pub stage: Stage,
    /// Whether somebody still has to look.
    pub judgement: Judgement,
}

/// When a record was told and when its content holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// When it was told, Unix milliseconds.
    pub told_ms: i64,
    /// The teller's offset from UTC at that time, minutes.
    pub utc_offset_min: i16,
    /// From when the content holds, if that differs from `told_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from_ms: Option<i64>,
    /// Until when the content held, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to_ms: Option<i64>,
}

/// Where a record comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// Who said it.
    pub role: Role,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Name>,
    /// The turn in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Name>,
    /// Position of the statement in the turn, from 0.
    pub statement: u16,
}

vocabulary! {
    /// How a record replaces another.
    pub enum SupersedeKind {
        /// The earlier value was true and no longer is.
        Changed = "changed",
        /// The earlier value was never true.
        Corrected = "corrected",
        /// The same fact told again.
        Merged = "merged",
        /// The earlier fact is over, and nothing took its place.
        Ended = "ended",
        /// For a time only: the earlier value stays current, and holds alone again afterwards.
        Excepted = "excepted",
        /// They may contradict each other; both stay current.
        Conflict = "conflict",
        /// A part of the earlier one changes, or something of its kind comes to it: both stay current, and are shown together.
        Beside = "beside",
    }
}

/// A record that this one replaces, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Supersedes {
    /// The earlier record.
    pub id: RecordId,
    /// How.
    pub kind: SupersedeKind,
    /// A sentence for the history.
    pub why: String,
}

/// A record that this one was derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The source.
    pub id: RecordId,
    /// The exact words of the source that support this record.
    pub quote: String,
}

/// The unit of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its id.
    pub id: RecordId,
    /// Whose and where.
    pub scope: Scope,
    /// The guarded statement.
    pub text: String,
    /// What kind of knowledge.
    pub layer: Layer,
    /// The router's (or the owner's) verdict.
    pub route: Route,
    /// Whom it is about.
    pub subject: Subject,
    /// The attribute it states, if one was extracted ("home city").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The value of the attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// When.
    pub times: Times,
    /// Where it is in its life.
    pub status: Status,
    /// What it replaces.
    #[serde(default)]
    pub supersedes: Vec<Supersedes>,
    /// What it was derived from.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// When the owner last confirmed it, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_ms: Option<i64>,
    /// How often it was told; at least 1.
    pub proof_count: u32,
}
