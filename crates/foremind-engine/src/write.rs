//! Verbs that add: remember, ingest, backfill.

use foremind_types::small::SmallMap;

use foremind_router::{Keep, Routing};
use foremind_types::limits::{EMBED_TEXTS, RECORDS};
use foremind_types::{
    Ambient, Change, Embedding, Error, ErrorCode, Grade, Judgement, Layer, ModelId, Name,
    Provenance, Record, RecordId, Revision, Role, Route, Scope, Stage, Status, Tier, Times,
};

use crate::engine::{Engine, invalid};
use crate::identity::{Identity, identity};
use crate::op::{Answer, Plan, VectorCache};
use crate::recall::status_at;
use crate::response::{Ignored, Noted, Outcome, Response};
use crate::state::TurnKey;
use crate::statements::{self, Statement};
use crate::{IngestMode, TurnStatus};

/// Most texts that a write waits for; the vectors of further ones come by backfill.
const INLINE_TEXTS: usize = 4 * EMBED_TEXTS;
/// Most texts of one backfill.
const BACKFILL_TEXTS: u32 = 256;

/// Where statements come from.
pub(crate) struct Told<'r> {
    pub(crate) scope: &'r Scope,
    pub(crate) role: Role,
    pub(crate) thread: Option<&'r Name>,
    pub(crate) turn: Option<&'r Name>,
    /// The tier that the owner wants.
    pub(crate) tier: Option<Tier>,
}

/// The turn of an `ingest`.
pub(crate) struct Turn<'r> {
    pub(crate) told: Told<'r>,
    pub(crate) key: TurnKey,
    pub(crate) status: TurnStatus,
    pub(crate) mode: IngestMode,
    pub(crate) finding: bool,
}

impl Engine {
    pub(crate) fn remember(
        &self,
        told: &Told<'_>,
        text: &str,
        routed: &mut Option<Vec<Statement>>,
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Result<Plan, Error> {
        if routed.is_none() {
            *routed = Some(statements::whole(&self.guard, &self.router, text, at)?);
        }
        let statements = routed.as_deref_mut().unwrap_or_default();
        if let Some(texts) = self.judge_open(statements, vectors, at) {
            return Ok(Plan::Encode(texts));
        }
        let kept: Vec<(u16, &Statement)> = (0..).zip(&*statements).collect();
        let noted = match self.note(told, &kept, vectors, at)? {
            Note::Encode(texts) => return Ok(Plan::Encode(texts)),
            Note::Ready(noted) => noted,
        };
        Ok(Plan::Commit {
            changes: noted.changes,
            answer: Answer::Remember(noted.outcomes),
        })
    }

    pub(crate) fn ingest(
        &self,
        turn: &Turn<'_>,
        text: &str,
        routed: &mut Option<Vec<Statement>>,
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Result<Plan, Error> {
        let ignored = if turn.mode != IngestMode::On {
            Some(Ignored::Mode)
        } else if turn.status != TurnStatus::Ok {
            Some(Ignored::Status)
        } else if turn.told.role != Role::User && !turn.finding {
            Some(Ignored::Role)
        } else {
            None
        };
        if ignored.is_some() {
            return Ok(Plan::Done(Response::Ingest {
                records: Vec::new(),
                repeated: false,
                ignored,
            }));
        }
        if let Some(ids) = self.state.turn(&turn.key) {
            let records = ids
                .iter()
                .filter_map(|id| self.record_at(*id, at.now_ms))
                .map(|record| Noted {
                    record,
                    outcome: Outcome::Repeated,
                })
                .collect();
            return Ok(Plan::Done(Response::Ingest {
                records,
                repeated: true,
                ignored: None,
            }));
        }
        if routed.is_none() {
            *routed = Some(statements::of_turn(&self.guard, &self.router, text, at)?);
        }
        let statements = routed.as_deref_mut().unwrap_or_default();
        if let Some(texts) = self.judge_open(statements, vectors, at) {
            return Ok(Plan::Encode(texts));
        }
        let kept: Vec<(u16, &Statement)> = (0..)
            .zip(&*statements)
            .filter(|(_, statement)| statement.routing.keep != Keep::Nothing)
            .collect();
        let mut noted = match self.note(&turn.told, &kept, vectors, at)? {
            Note::Encode(texts) => return Ok(Plan::Encode(texts)),
            Note::Ready(noted) => noted,
        };
        noted.changes.push(Change::Turn {
            scope: turn.key.scope.clone(),
            thread: turn.key.thread.clone(),
            turn: turn.key.turn.clone(),
            records: noted.outcomes.iter().map(|(id, _)| *id).collect(),
        });
        Ok(Plan::Commit {
            changes: noted.changes,
            answer: Answer::Ingest(noted.outcomes),
        })
    }

    /// Has the encoder's head judge the statements that words leave open or in doubt; the texts that it still has to see.
    fn judge_open(
        &self,
        statements: &mut [Statement],
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Option<Vec<String>> {
        let head = self.head.as_ref()?;
        let asks = |statement: &&mut Statement| {
            statement.status == Status::Current
                && self
                    .router
                    .asks_encoder(statement.text.as_str(), &statement.routing)
        };
        let open: Vec<&mut Statement> = statements.iter_mut().filter(asks).collect();
        let texts = open.iter().map(|statement| statement.text.as_str());
        if let Some(texts) = vectors.missing(texts) {
            return Some(texts);
        }
        for statement in open {
            if let Some(features) = vectors.features(statement.text.as_str()) {
                let judged =
                    self.router
                        .judge_features(statement.routing.clone(), head, features, at);
                // Features of another shape leave the statement as words leave it.
                if let Ok(routing) = judged {
                    statement.routing = routing;
                }
            }
        }
        None
    }

    /// Turns statements into changes: a new record each, or one more telling of a known one.
    fn note(
        &self,
        told: &Told<'_>,
        statements: &[(u16, &Statement)],
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Result<Note, Error> {
        let mut adding: Vec<Record> = Vec::new();
        let mut added: SmallMap<Identity, usize> = SmallMap::new();
        let mut tellings: SmallMap<RecordId, u32> = SmallMap::new();
        let mut outcomes: Vec<(RecordId, Outcome)> = Vec::new();
        for (position, statement) in statements {
            let identity = identity(told.scope, told.role, statement.text.as_str());
            if let Some(place) = added.get(&identity) {
                let twin = &mut adding[*place];
                twin.proof_count += 1;
                outcomes.push((twin.id, Outcome::Merged));
                continue;
            }
            let known = self
                .state
                .same(&identity)
                .find(|record| status_at(record, at.now_ms) == statement.status);
            if let Some(known) = known {
                *tellings.entry(known.id).or_default() += 1;
                outcomes.push((known.id, Outcome::Merged));
                continue;
            }
            let record = record_of(told, *position, statement, at);
            outcomes.push((record.id, Outcome::Added));
            added.insert(identity, adding.len());
            adding.push(record);
        }
        if self.state.ids() + adding.len() > RECORDS {
            return Err(Error::new(
                ErrorCode::LimitReached,
                format!("a memory holds at most {RECORDS} records; forget some or open another"),
            ));
        }
        let inline = adding
            .iter()
            .filter(|record| record.status == Status::Current)
            .map(|record| record.text.as_str())
            .take(INLINE_TEXTS);
        if let Some(texts) = vectors.missing(inline) {
            return Ok(Note::Encode(texts));
        }

        let mut resolved = self.resolve(&mut adding, vectors, at);
        adding.retain(|record| !resolved.same.contains_key(&record.id));
        for (id, outcome) in &mut outcomes {
            if let Some(known) = resolved.same.get(id) {
                *tellings.entry(*known).or_default() += 1;
                (*id, *outcome) = (*known, Outcome::Merged);
            } else if let Some(more) = resolved
                .outcomes
                .get(id)
                .filter(|_| *outcome == Outcome::Added)
            {
                *outcome = *more;
            }
        }
        let mut changes: Vec<Change> = core::mem::take(&mut resolved.changes);
        for record in adding {
            let current = record.status == Status::Current;
            let embedding = vectors.of(&record.text).filter(|_| current).cloned();
            let id = record.id;
            changes.push(Change::Add(Box::new(record)));
            changes.extend(embedding.map(|embedding| Change::Embed { id, embedding }));
        }
        for (id, times) in tellings {
            let Some(known) = self.state.record(id) else {
                continue;
            };
            changes.push(Change::Revise {
                id,
                revision: Revision::Told {
                    at_ms: at.now_ms,
                    proof_count: known.proof_count.saturating_add(times),
                },
            });
            let current = known.status == Status::Current;
            let wanted = told.tier.filter(|tier| *tier != known.route.tier);
            if let Some(tier) = wanted.filter(|_| current) {
                let route = Box::new(owner_route(&known.route, tier));
                changes.push(Change::Revise {
                    id,
                    revision: Revision::Route(route),
                });
            }
        }
        Ok(Note::Ready(Noting { changes, outcomes }))
    }

    pub(crate) fn backfill(
        &self,
        max: Option<u32>,
        model: Option<&ModelId>,
        vectors: &VectorCache,
        at: &Ambient,
    ) -> Result<Plan, Error> {
        let max = max.unwrap_or(EMBED_TEXTS as u32);
        if !(1..=BACKFILL_TEXTS).contains(&max) {
            return Err(invalid(format!("max must be 1 to {BACKFILL_TEXTS}")));
        }
        let waiting = self.state.without_vector(model);
        let records: Vec<&Record> = waiting
            .iter()
            .take(max as usize)
            .filter_map(|id| self.state.record(*id))
            .collect();
        if let Some(texts) = vectors.missing(records.iter().map(|record| record.text.as_str())) {
            return Ok(Plan::Encode(texts));
        }
        let mut changes: Vec<Change> = records
            .iter()
            .filter_map(|record| {
                let embedding: Embedding = vectors.of(&record.text)?.clone();
                // An embedder that is not the named model would be asked for the same records for ever.
                let wanted = model.is_none_or(|model| *model == embedding.model_id);
                wanted.then_some(Change::Embed {
                    id: record.id,
                    embedding,
                })
            })
            .collect();
        let encoded = changes.len() as u32;
        changes.extend(
            records
                .iter()
                .filter_map(|record| self.judged_late(record, vectors, at)),
        );
        if changes.is_empty() {
            return Ok(Plan::Done(Response::Backfill {
                encoded,
                remaining: waiting.len() as u32,
            }));
        }
        Ok(Plan::Commit {
            changes,
            answer: Answer::Backfill {
                encoded,
                model: model.cloned(),
            },
        })
    }
}

impl Engine {
    /// The verdict of the encoder's head on a record that was written without it, where it is another one.
    fn judged_late(&self, record: &Record, vectors: &VectorCache, at: &Ambient) -> Option<Change> {
        let head = self.head.as_ref()?;
        let lexical = Routing {
            keep: Keep::Record,
            route: record.route.clone(),
            subject: record.subject,
            attribute: record.attribute.clone(),
            value: record.value.clone(),
            valid_from_ms: record.times.valid_from_ms,
        };
        if !self.router.asks_encoder(&record.text, &lexical) {
            return None;
        }
        let features = vectors.features(&record.text)?;
        let judged = self.router.judge_features(lexical, head, features, at);
        let route = Box::new(judged.ok()?.route);
        (*route != record.route).then_some(Change::Revise {
            id: record.id,
            revision: Revision::Route(route),
        })
    }
}

enum Note {
    Encode(Vec<String>),
    Ready(Noting),
}

struct Noting {
    changes: Vec<Change>,
    outcomes: Vec<(RecordId, Outcome)>,
}

/// The record of a statement that is told for the first time.
pub(crate) fn record_of(
    told: &Told<'_>,
    position: u16,
    statement: &Statement,
    at: &Ambient,
) -> Record {
    let routing = &statement.routing;
    let route = match told.tier {
        Some(tier) if statement.status == Status::Current => owner_route(&routing.route, tier),
        _ => routing.route.clone(),
    };
    Record {
        id: RecordId::new(at.now_ms, id_entropy(at, position)),
        scope: told.scope.clone(),
        text: statement.text.as_str().to_owned(),
        layer: match routing.keep {
            Keep::Episode => Layer::Episode,
            Keep::Record | Keep::Nothing => Layer::Fact,
        },
        route,
        subject: routing.subject,
        attribute: routing.attribute.clone(),
        value: routing.value.clone(),
        times: Times {
            told_ms: at.now_ms,
            utc_offset_min: at.utc_offset_min,
            valid_from_ms: routing.valid_from_ms,
            valid_to_ms: None,
        },
        status: statement.status,
        supersedes: Vec::new(),
        evidence: Vec::new(),
        provenance: Provenance {
            role: told.role,
            thread: told.thread.cloned(),
            turn: told.turn.cloned(),
            statement: position,
        },
        confirmed_ms: None,
        proof_count: 1,
    }
}

/// Entropy of the record of one statement: the call's own serves other purposes as well, so each derives.
fn id_entropy(at: &Ambient, position: u16) -> [u8; 10] {
    let mut hasher = blake3::Hasher::new_derive_key("foremind record id 1");
    hasher.update(&at.entropy);
    hasher.update(&position.to_le_bytes());
    let mut entropy = [0; 10];
    hasher.finalize_xof().fill(&mut entropy);
    entropy
}

/// The verdict when the owner chose the tier.
pub(crate) fn owner_route(route: &Route, tier: Tier) -> Route {
    Route {
        stage: Stage::Owner,
        ..placed(route, tier)
    }
}

/// The verdict, settled, with a grade and a priority that suit the tier.
pub(crate) fn placed(route: &Route, tier: Tier) -> Route {
    let (grade, priority) = match (tier, route.grade) {
        (Tier::Store, _) => (Grade::Informer, 0.0),
        // Put into the profile by hand, so it ranks high among circumstances.
        (Tier::Profile, Grade::Informer) => (Grade::Circumstance, 1.0),
        (Tier::Profile, grade) => (grade, route.priority),
    };
    Route {
        tier,
        grade,
        priority,
        judgement: Judgement::Settled,
        ..route.clone()
    }
}
