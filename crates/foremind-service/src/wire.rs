//! The bodies of requests and responses. A field that is not named here is refused, and so is one that stands twice.

use foremind_engine::{Ignored, IngestMode, Noted, Prompt, Request, Shown, TurnStatus};
use foremind_types::{
    Domain, Error, Grade, Name, Receipt, Record, RecordId, Role, Scope, Severity, Stage, Status,
    Tier,
};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::grant::Verb;

/// Who answers for a memory: a team, a mailbox, a queue. 1 to 128 characters of `A-Z a-z 0-9 . _ ~ - @ + :`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Owner(
    #[cfg_attr(
        feature = "openapi",
        schemars(regex(pattern = r"^[A-Za-z0-9._~@+:-]{1,128}$"))
    )]
    String,
);

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-@+:".contains(&byte);
        if (1..=128).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text))
        } else {
            Err(de::Error::custom(
                "expected 1 to 128 characters of A-Z a-z 0-9 . _ ~ - @ + :",
            ))
        }
    }
}

/// `POST /v1/turns`
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnBody {
    /// Whose memories.
    pub tenant: Name,
    /// Whose memory.
    pub user: Name,
    /// Where it was said; what is kept is seen only there.
    #[serde(default)]
    pub project: Option<Name>,
    /// To which agent; what is kept is seen only by it.
    #[serde(default)]
    pub agent: Option<Name>,
    /// The conversation.
    pub thread: Name,
    /// The turn in it. The same thread and turn again give the first result.
    pub turn: Name,
    /// Who speaks.
    #[serde(default = "user")]
    pub role: Role,
    /// The whole turn; absent or empty: it is skipped.
    #[serde(default)]
    pub text: String,
    /// A failed turn is skipped.
    #[serde(default)]
    pub status: HowItEnded,
    /// Whether the memory listens.
    #[serde(default)]
    pub mode: Mode,
    /// Marks the model's or a tool's own finding as worth keeping; without it their turns are skipped.
    #[serde(default)]
    pub finding: bool,
    /// Who answers for the memory, from now on.
    #[serde(default)]
    pub owner: Option<Owner>,
}

fn user() -> Role {
    Role::User
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HowItEnded {
    /// As intended.
    #[default]
    Ok,
    /// With an error.
    Failed,
}

/// Whether the memory takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It does.
    #[default]
    On,
    /// Its owner switched it off: nothing is stored and nothing shown.
    Off,
    /// The conversation is private: nothing is stored.
    Incognito,
}

impl TurnBody {
    /// Why the memory need not be opened for it.
    pub(crate) fn ignored(&self) -> Option<&'static str> {
        if self.mode != Mode::On {
            Some("mode")
        } else if self.status == HowItEnded::Failed {
            Some("status")
        } else if self.text.trim().is_empty() {
            Some("empty")
        } else {
            None
        }
    }

    pub(crate) fn into_request(self) -> Request {
        Request::Ingest {
            scope: Scope {
                user: self.user,
                project: self.project,
                thread: None,
                agent: self.agent,
            },
            thread: self.thread,
            turn: self.turn,
            role: self.role,
            text: self.text,
            status: TurnStatus::Ok,
            mode: IngestMode::On,
            finding: self.finding,
        }
    }
}

/// `POST /v1/recall`. The ids are absent or those of the grant.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecallBody {
    /// The question.
    pub query: String,
    /// Hard limit of the prompt, 1 to 1,000,000.
    #[serde(default = "budget_tokens")]
    pub budget_tokens: u32,
    /// After so many milliseconds the profile alone, 1 to 5,000; absent: as the service is set up.
    #[serde(default)]
    pub deadline_ms: Option<u32>,
    /// `off`: an empty prompt.
    #[serde(default)]
    pub mode: Mode,
    /// The grant's project.
    #[serde(default)]
    pub project: Option<Name>,
    /// The grant's conversation.
    #[serde(default)]
    pub thread: Option<Name>,
    /// The grant's agent.
    #[serde(default)]
    pub agent: Option<Name>,
}

/// Tokens of a prompt when the caller names no budget.
pub(crate) fn budget_tokens() -> u32 {
    512
}

/// Query of `GET /v1/profile`. The ids are absent or those of the grant.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileQuery {
    /// Hard limit of the prompt, 1 to 1,000,000.
    #[serde(default = "budget_tokens")]
    pub budget_tokens: u32,
    /// How old the answer of a replica may be, in milliseconds, where the host has one; absent or 0: the memory itself is
    /// asked. What a replica answers has `generation` and `ageMs`.
    #[serde(default)]
    pub max_age_ms: Option<u32>,
    /// The grant's project.
    #[serde(default)]
    pub project: Option<Name>,
    /// The grant's conversation.
    #[serde(default)]
    pub thread: Option<Name>,
    /// The grant's agent.
    #[serde(default)]
    pub agent: Option<Name>,
}

/// `POST /v1/grants`
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantBody {
    /// Whose memories.
    pub tenant: Name,
    /// Whose memory.
    pub user: Name,
    /// Narrows to a project.
    #[serde(default)]
    pub project: Option<Name>,
    /// Narrows to a conversation.
    #[serde(default)]
    pub thread: Option<Name>,
    /// Narrows to an agent.
    #[serde(default)]
    pub agent: Option<Name>,
    /// What the holder may do; absent: `recall` and `profile`.
    #[serde(default = "verbs")]
    pub verbs: Vec<Verb>,
    /// Seconds until it is of no use, 1 to 86,400; absent: 900.
    #[serde(default = "life_s")]
    pub life_s: i64,
    /// Who answers for the memory, from now on.
    #[serde(default)]
    pub owner: Option<Owner>,
}

fn verbs() -> Vec<Verb> {
    vec![Verb::Recall, Verb::Profile]
}

fn life_s() -> i64 {
    crate::grant::GRANT_S
}

/// Query of `GET /v1/records`. With a grant the ids are absent or the grant's, and tenant and user are refused; with
/// a service key tenant and user are needed.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListQuery {
    /// With a service key only: whose memories.
    #[serde(default)]
    pub tenant: Option<Name>,
    /// With a service key only: whose memory.
    #[serde(default)]
    pub user: Option<Name>,
    /// A project.
    #[serde(default)]
    pub project: Option<Name>,
    /// A conversation, where the grant or the records are narrowed to one.
    #[serde(default)]
    pub thread: Option<Name>,
    /// An agent.
    #[serde(default)]
    pub agent: Option<Name>,
    /// Of this tier only.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// Of this status only; absent: every status but erased.
    #[serde(default)]
    pub status: Option<Status>,
    /// Of this domain only.
    #[serde(default)]
    pub domain: Option<Domain>,
    /// At most so many, 1 to 1,000.
    #[serde(default = "limit")]
    pub limit: u32,
    /// Those after this id.
    #[serde(default)]
    pub after: Option<RecordId>,
}

fn limit() -> u32 {
    100
}

/// Query where a memory or a part of it is named: as in [`ListQuery`].
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlaceQuery {
    /// With a service key only: whose memories.
    #[serde(default)]
    pub tenant: Option<Name>,
    /// With a service key only: whose memory.
    #[serde(default)]
    pub user: Option<Name>,
    /// A project.
    #[serde(default)]
    pub project: Option<Name>,
    /// A conversation.
    #[serde(default)]
    pub thread: Option<Name>,
    /// An agent.
    #[serde(default)]
    pub agent: Option<Name>,
}

/// Query of `DELETE /v1/memory` and `GET /v1/export`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryQuery {
    /// Whose memories.
    pub tenant: Name,
    /// Whose memory.
    pub user: Name,
}

/// Query of `GET /v1/memories`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoriesQuery {
    /// Whose memories.
    pub tenant: Name,
    /// `none`: only memories for which nobody answers.
    #[serde(default)]
    pub owner: Option<OwnerFilter>,
    /// Where the last page ended.
    #[serde(default)]
    pub after: u16,
}

/// Which memories are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OwnerFilter {
    /// Those without an owner.
    None,
}

/// Answer to `POST /v1/turns`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnAnswer {
    /// What was kept, one for each statement, in order.
    pub records: Vec<RecordBody>,
    /// Whether the turn was ingested before.
    pub repeated: bool,
    /// Why the turn was not looked at: `mode`, `status`, `role` or `empty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<&'static str>,
}

impl TurnAnswer {
    pub(crate) fn ignored(why: &'static str) -> Self {
        Self {
            ignored: Some(why),
            ..Self::default()
        }
    }

    pub(crate) fn new(noted: &[Noted], repeated: bool, ignored: Option<Ignored>) -> Self {
        Self {
            records: noted.iter().map(|noted| (&noted.record).into()).collect(),
            repeated,
            ignored: ignored.map(|why| match why {
                Ignored::Mode => "mode",
                Ignored::Status => "status",
                Ignored::Role => "role",
            }),
        }
    }
}

/// Answer to `POST /v1/recall` and `GET /v1/profile`: always there, so that the turn goes on.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptAnswer {
    /// The text for the model; empty when there is nothing to show.
    pub prompt: String,
    /// Estimated tokens of it, never more than the budget.
    pub tokens: u32,
    /// The records of the profile section, in order.
    pub profile: Vec<RecordBody>,
    /// The records of the context section, best first.
    pub context: Vec<RecordBody>,
    /// Records that found no room.
    pub dropped: Vec<RecordId>,
    /// Whether the search went by words only.
    pub lexical_only: bool,
    /// Until when the profile section stays the same without a write, Unix milliseconds; absent: for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_until_ms: Option<i64>,
    /// Why the answer is less than was asked for: `deadline` (the profile alone), `mode`, or the code of what failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a replica's answer: how many commits led to the state that it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Of a replica's answer: at most so many milliseconds ago that state was the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

impl PromptAnswer {
    pub(crate) fn new(prompt: Prompt, reason: Option<&str>) -> Self {
        let records = |shown: &[Shown]| shown.iter().map(|shown| (&shown.record).into()).collect();
        Self {
            tokens: prompt.tokens,
            profile: records(&prompt.profile),
            context: records(&prompt.context),
            dropped: prompt.dropped.iter().map(|dropped| dropped.id).collect(),
            lexical_only: prompt.lexical_only,
            stable_until_ms: prompt.stable_until_ms,
            reason: reason.map(str::to_owned),
            generation: None,
            age_ms: None,
            prompt: prompt.prompt,
        }
    }

    /// The empty prompt that a failure leaves.
    pub(crate) fn failed(error: &Error) -> Self {
        Self::without(error.code.as_str())
    }

    pub(crate) fn without(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::default()
        }
    }
}

/// Answer to `POST /v1/grants`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GrantAnswer {
    /// The token: `Authorization: Bearer` and this.
    pub grant: String,
    /// When it ends, Unix milliseconds.
    pub expires_ms: i64,
}

/// A record as it is shown.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordBody {
    /// Its id.
    pub id: RecordId,
    /// The statement.
    pub text: String,
    /// What it does to answers.
    pub grade: Grade,
    /// Where it lives.
    pub tier: Tier,
    /// What it is about.
    pub domain: Domain,
    /// How bad a wrong answer would be.
    pub severity: Severity,
    /// Which stage decided.
    pub stage: Stage,
    /// Where it is in its life.
    pub status: Status,
    /// Who said it.
    pub role: Role,
    /// When it was told, Unix milliseconds.
    pub told_ms: i64,
    /// From when it holds, if that is another time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from_ms: Option<i64>,
    /// Until when it held, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to_ms: Option<i64>,
    /// Where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// To which agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// In which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Name>,
    /// In which turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Name>,
    /// How often it was told.
    pub proof_count: u32,
}

impl From<&Record> for RecordBody {
    fn from(record: &Record) -> Self {
        let Record {
            route,
            times,
            scope,
            provenance,
            ..
        } = record;
        Self {
            id: record.id,
            text: record.text.clone(),
            grade: route.grade,
            tier: route.tier,
            domain: route.domain,
            severity: route.severity,
            stage: route.stage,
            status: record.status,
            role: provenance.role,
            told_ms: times.told_ms,
            valid_from_ms: times.valid_from_ms,
            valid_to_ms: times.valid_to_ms,
            project: scope.project.clone(),
            agent: scope.agent.clone(),
            thread: provenance.thread.clone(),
            turn: provenance.turn.clone(),
            proof_count: record.proof_count,
        }
    }
}

/// Answer to `GET /v1/records`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListAnswer {
    /// By id, so earliest told first.
    pub records: Vec<RecordBody>,
    /// Pass it as `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<RecordId>,
}

/// Answer to `DELETE /v1/records` and `DELETE /v1/records/{id}`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ForgottenAnswer {
    /// How many records were erased.
    pub erased: u32,
    /// The proof, when something was erased: keep it outside of the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
}

/// Answer to `DELETE /v1/memory`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RemovedAnswer {
    /// The proof: keep it outside of the memory, which is no more.
    pub receipt: Box<Receipt>,
}

/// Answer to the tool `remember`.
#[derive(Debug, Serialize)]
pub(crate) struct RememberAnswer {
    pub(crate) records: Vec<RecordBody>,
}

/// Answer to `GET /v1/memories`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct MemoriesAnswer {
    /// Part of the tenant's memories, in no particular order; may be empty before the last page.
    pub memories: Vec<MemoryBody>,
    /// Pass it as `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u16>,
}

/// A memory in the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryBody {
    /// Whose it is.
    pub user: Name,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Since when it is known, Unix milliseconds.
    pub since_ms: i64,
}

/// Answer to `GET /healthz`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct HealthAnswer {
    /// `ok`
    pub status: &'static str,
    /// Of foremind.
    pub version: &'static str,
}
